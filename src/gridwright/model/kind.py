"""From the words of a system file to a distribution, and back."""

import inspect
import os
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, ValidationError, ValidationInfo

from .distribution import KINDS, Distribution
from .error import InputError, did_you_mean
from .explanation import explain, shortened
from .source import load_module

__all__ = ["AnyDistribution", "describe", "parse"]


def parse(value: Any, folder: Path | None = None) -> Distribution:
    """Make a distribution of a name, or of a table with a ``kind`` and its parameters.

    >>> parse("exponential")
    Exponential()
    >>> parse({"kind": "weibull", "shape": 0.6})
    Weibull(shape=0.6)
    """
    if isinstance(value, Distribution):
        return value
    table = {"kind": value} if isinstance(value, str) else value
    if not isinstance(table, dict) or not isinstance(table.get("kind"), str):
        raise InputError(
            f"{shortened(value)} is not a distribution; expected a name such as 'exponential', "
            "or a table such as { kind = 'weibull', shape = 0.6 }"
        )
    kind = _find(table["kind"], folder or Path())
    try:
        found = kind.model_validate({key: table[key] for key in table if key != "kind"})
    except ValidationError as error:
        raise InputError(f"{table['kind']}: {explain(error, kind)}") from None
    except TypeError as error:  # a class without variance or sample
        raise InputError(f"{table['kind']}: {error}") from None
    if kind not in KINDS.values():
        _try(found, table["kind"])
    return found


def describe(distribution: Distribution, folder: Path | None = None) -> str | dict[str, Any]:
    """Say a distribution in the words of a system file that stands in a folder."""
    parameters = distribution.model_dump(mode="json", exclude_defaults=True)
    kind = _name(type(distribution), folder)
    return {"kind": kind, **parameters} if parameters else kind


def _in_context(value: Any, info: ValidationInfo) -> Distribution:
    return parse(value, (info.context or {}).get("folder"))


AnyDistribution = Annotated[Distribution, BeforeValidator(_in_context)]
"""Field type: a distribution, given in any of the ways that ``parse`` takes."""


def _find(kind: str, folder: Path) -> type[Distribution]:
    if ".py" not in kind:
        if kind not in KINDS:
            raise InputError(f"no distribution {kind!r}{did_you_mean(kind, KINDS) or _known()}")
        return KINDS[kind]
    file, _, name = kind.rpartition(":")
    if not name or not file.endswith(".py"):
        raise InputError(f"{kind!r} names no class; expected 'FILE.py:CLASS'")
    return _class_in(folder / file, name)


def _known() -> str:
    return f"; there are {', '.join(sorted(KINDS))}, and your own as './FILE.py:CLASS'"


def _class_in(path: Path, name: str) -> type[Distribution]:
    own = {
        key: item
        for key, item in vars(load_module(path)).items()
        if isinstance(item, type) and issubclass(item, Distribution) and item is not Distribution
    }
    if name not in own:
        raise InputError(f"{path} has no distribution {name!r}{did_you_mean(name, own)}")
    return own[name]


def _try(distribution: Distribution, kind: str) -> None:
    """Draw from a user's own distribution once, so that a mistake in it shows at once."""
    try:
        mean, variance = float(distribution.mean), float(distribution.variance)
        draws = np.asarray(distribution.sample(np.random.default_rng(0), 100), dtype=float)
    except Exception as error:
        raise InputError(f"{kind}: {type(error).__name__}: {error}") from None
    if not (0 < mean < np.inf and variance >= 0):
        raise InputError(
            f"{kind} has mean {mean:g} and variance {variance:g}; expected > 0 and ≥ 0"
        )
    if draws.shape != (100,) or not (np.isfinite(draws).all() and (draws >= 0).all()):
        raise InputError(f"{kind} must return as many finite numbers ≥ 0 as sample() is asked for")


def _name(kind: type[Distribution], folder: Path | None) -> str:
    if KINDS.get(kind.__name__.lower()) is kind:
        return kind.__name__.lower()
    try:
        file = Path(inspect.getfile(kind)).resolve()
    except (OSError, TypeError):
        raise InputError(
            f"{kind.__name__} stands in no file, so no system file can name it"
        ) from None
    shown = Path(os.path.relpath(file, (folder or Path()).resolve())).as_posix()
    return f"{shown}:{kind.__name__}"
