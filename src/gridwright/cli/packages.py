"""The packages that the commands use. Each is loaded on first use, so that help is quick."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["allocation", "catalogue", "duration", "experiments", "grid", "model", "plots"]
__all__ += ["policies", "prediction", "progress", "report", "reproduction", "service"]
__all__ += ["simulation", "statistics", "testbed", "traces"]
MODULES = {
    "duration": "traces.duration",
    **{name: f"grid.{name}" for name in ("prediction", "progress", "service")},
}

if TYPE_CHECKING:
    from .. import (
        allocation,
        catalogue,
        experiments,
        grid,
        model,
        plots,
        policies,
        report,
        reproduction,
        simulation,
        statistics,
        testbed,
        traces,
    )
    from ..grid import prediction, progress, service
    from ..traces import duration
else:

    class Package:
        """Stand for a package, and load it when one of its names is used."""

        def __init__(self, path: str) -> None:
            self._path = path

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(f"..{self._path}", __package__), name)

    globals().update({name: Package(MODULES.get(name, name)) for name in __all__})
