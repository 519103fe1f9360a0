"""What all pictures share. Matplotlib is imported when the first figure is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import numpy as np

from ..model.error import file_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..experiments import Result

FORMATS = (".png", ".svg", ".pdf")
FAR = 20.0
"""The ratio of the largest to the smallest value beyond which an axis is logarithmic."""


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: Path | None) -> Figure:
    """Write a figure if there is a path, in the format of its ending; return the figure."""
    import matplotlib

    if path is None:
        return figure
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}  # the same file every time
    metadata: Any = dates.get(path.suffix.lower(), {})
    salt = matplotlib.rc_context({"svg.hashsalt": "gridwright"})
    with file_errors(path, "written"), salt, catch_warnings():
        simplefilter("ignore")  # a name in a script that no font here has
        figure.savefig(path, dpi=150, bbox_inches="tight", metadata=metadata)
    return figure


def literal(name: str) -> str:
    """Escape a name so that Matplotlib does not read it as a formula."""
    return name.replace("$", r"\$").encode("utf-8", "replace").decode()


def mark(result: Result) -> str:
    """Return what follows the name of a policy that is unstable or undecided."""
    return "" if result.stable else f"\n({result.stability.word})"


def heat_map(axes: Axes, values: Any, label: str = "", **more: Any) -> None:
    """Draw shares from 0 to 1 as a matrix: darker is more, and what is masked is white."""
    image = axes.imshow(values, cmap="YlGnBu", vmin=0, vmax=1, aspect="auto", **more)
    if label:
        axes.figure.colorbar(image, ax=axes, label=label)


def write_cells(axes: Axes, shares: Any, words: Any, **looks: Any) -> None:
    """Write into the cells of a heat map, in white where they are dark."""
    for (i, j), text in np.ndenumerate(words):
        if text:
            colour = "white" if shares[i, j] > 0.5 else "black"
            axes.text(j, i, text, ha="center", va="center", color=colour, **looks)


def log_if_far(axes: Axes, values: Iterable[float]) -> None:
    """Make the vertical axis logarithmic if the positive values differ widely."""
    positive = [value for value in values if value > 0]
    if positive and max(positive) > FAR * min(positive):
        axes.set_yscale("log")


def band(
    axes: Axes, at: Any, estimates: Iterable[Any], k: int, label: str, *, size: float = 4
) -> Any:
    """Draw means as a line with dots, and their intervals as a band; return the means."""
    means, low, high = np.array(list(estimates), dtype=float).T
    axes.plot(at, means, marker="o", markersize=size, color=f"C{k}", label=label)
    axes.fill_between(at, low, high, color=f"C{k}", alpha=0.2, linewidth=0)
    return means


def side_by_side(
    axes: Axes, groups: Sequence[Sequence[float]], errors: Sequence[Sequence[float]] | None = None
) -> None:
    """Draw bars next to each other, those of each group in one colour."""
    width = 0.8 / len(groups)
    for k, heights in enumerate(groups):
        at = np.arange(len(heights)) + (k - (len(groups) - 1) / 2) * width
        error = None if errors is None else errors[k]
        axes.bar(at, heights, width, yerr=error, color=f"C{k}", capsize=2)
