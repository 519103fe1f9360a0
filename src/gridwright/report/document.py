"""HTML documents in one file, without outside fonts, scripts or pictures."""

from __future__ import annotations

import platform
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

from ..compiler.computer import computer
from ..model import InputError

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --soft: #f3f5f7;
  --faint: #59636e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #10141a; --line: #333b45; --soft: #1a2029; --faint: #9aa4b0; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.8rem; } h2 { font-size: 1.3rem; margin: 2.5rem 0 .3rem; }
p { margin: .4rem 0; max-width: 60rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .6rem 0; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th { background: var(--soft); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
img { background: #fff; max-width: 100%; height: auto; border: 1px solid var(--line);
  border-radius: 4px; }
figure { margin: .8rem 0; } figcaption { color: var(--faint); font-size: .9rem; }
summary { cursor: pointer; } nav { columns: 14rem; font-size: .9rem; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; }
.agrees::before { content: "✓ "; } .differs::before { content: "✗ "; }
.errata::before { content: "! "; } .not-run::before { content: "– "; }
.agrees { background: #0072b222; } .differs { background: #e69f0040; }
.errata { background: #cc79a740; }
"""
PARTS = ("numpy", "scipy", "numba", "highspy", "pydantic", "matplotlib", "distributed")


def write_document(path: Path, title: str, parts: Iterable[str]) -> None:
    """Write a document, whole or not at all."""
    text = "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head>",
            "<body>",
            f"<h1>{escape(title)}</h1>",
            *parts,
            "</body></html>",
        ]
    )
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


def paragraph(words: str) -> str:
    """Return a paragraph of plain words."""
    return f"<p>{escape(words)}</p>"


def section(title: str, parts: Iterable[str], name: str = "") -> str:
    """Return a section; links can point to its name."""
    where = f' id="{escape(name)}"' if name else ""
    return "\n".join([f"<section><h2{where}>{escape(title)}</h2>", *parts, "</section>"])


def details(title: str, parts: Iterable[str]) -> str:
    """Return parts that are folded away until the reader opens them."""
    return "\n".join([f"<details><summary>{escape(title)}</summary>", *parts, "</details>"])


def table(
    label: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    kinds: Sequence[str] = (),
) -> str:
    """Return a table of plain words; a head that begins with ``>`` is of numbers.

    ``label`` describes the table to screen readers. ``kinds`` has the kind of the last cell of
    each row: agrees, differs, …
    """
    numbers = [head.startswith(">") for head in heads]

    def cell(tag: str, words: str, number: bool, kind: str = "") -> str:
        classes = " ".join(filter(None, ["number" if number else "", kind.replace(" ", "-")]))
        mark = ' scope="col"' if tag == "th" else ""
        mark += f' class="{classes}"' if classes else ""
        return f"<{tag}{mark}>{escape(words)}</{tag}>"

    region = f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">'
    lines = [f"{region}<table>", "<thead><tr>"]
    lines += [cell("th", h.removeprefix(">"), n) for h, n in zip(heads, numbers, strict=True)]
    lines += ["</tr></thead><tbody>"]
    for row, last in zip(rows, kinds or repeat(""), strict=False):
        marks = [""] * (len(heads) - 1) + [last]
        cells = (cell("td", *each) for each in zip(row, numbers, marks, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def picture(
    draw: Callable[[Path], object], words: str, *, shows: str = "", vector: bool = True
) -> str:
    """Return a picture with its caption; ``draw`` takes the path to draw into.

    ``shows`` describes the picture to screen readers; by default the caption does.
    """
    kind, media = (".svg", "svg+xml") if vector else (".png", "png")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"picture{kind}"
        draw(path)
        data = b64encode(path.read_bytes()).decode()
    return (
        f'<figure><img alt="{escape(shows or words)}" src="data:image/{media};base64,{data}">'
        f"<figcaption>{escape(words)}</figcaption></figure>"
    )


def made(more: Iterable[tuple[str, str]] = ()) -> str:
    """Return a table of versions, machine and date."""
    rows = [
        *more,
        ("gridwright", version("gridwright")),
        ("Python", platform.python_version()),
        ("with", ", ".join(filter(None, map(_version, PARTS)))),
        ("machine", f"{computer()}, {platform.system()}"),
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
    ]
    return table("What it was made with", ["setting", "value"], rows)


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""
