"""Results as tables and pictures: data frames, HTML for notebooks, Matplotlib figures.

This module imports nothing of the package. The front door (``gridwright/__init__.py``) registers
the function that draws: pictures lie in a layer above the results.
"""

from collections.abc import Callable
from html import escape
from typing import Any

Row = dict[str, Any]
_PAINTERS: list[Callable[[Any], Any]] = []


def register_painter(painter: Callable[[Any], Any]) -> None:
    """Register the function that draws a result and returns a Matplotlib figure."""
    _PAINTERS[:] = [painter]


class Tabular:
    """A result that has rows: it can be a data frame, an HTML table and a picture."""

    def rows(self) -> list[Row]:
        """Return the rows of its table; a value may be an estimate with its interval."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Return the rows as a pandas data frame.

        An estimate takes three columns: its mean under its own name, and ``_low`` and ``_high``.
        """
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None
        return pandas.DataFrame([_flat(row) for row in self.rows()])

    def plot(self) -> Any:
        """Draw it; return a Matplotlib figure."""
        if not _PAINTERS:
            raise RuntimeError("nothing draws results here: import gridwright first")
        return _PAINTERS[0](self)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{escape(_written(row.get(name)))}</td>" for name in names)
            + "</tr>"
            for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _flat(row: Row) -> Row:
    found: Row = {}
    for name, value in row.items():
        if hasattr(value, "half_width"):
            found |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            found[name] = value
    return found


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if value != value else f"{value:.4g}"
    return "–" if value is None else str(value)
