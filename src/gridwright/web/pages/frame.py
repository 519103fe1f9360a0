"""What every page shares: navigation, light and dark, messages, inputs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any, TypeVar

from nicegui import run as background
from nicegui import ui

from ...catalogue import entries
from ...grid.journal import Journal
from ...model import GridwrightError, InputError, System
from ..documents import system_of
from ..fields import FormField
from ..runs import open_journal
from ..saved import OWN, load_saved, saved_lines
from ..summary import label_of

T = TypeVar("T")
Cell = str | tuple[str, str]
"""A text, or a link: its text and address."""
PAGES = {
    "Define": "/define",
    "Simulate": "/simulate",
    "Run": "/run",
    "Statistics": "/statistics",
    "Published": "/published",
    "Learn": "/learn",
}
STYLE = """
.q-page-container { max-width: 1500px; margin: 0 auto; }
.gw-nav a { padding: .5rem .7rem; border-radius: .4rem; color: inherit; text-decoration: none; }
.gw-nav a[aria-current] { background: rgba(0,0,0,.3); font-weight: 600; }
a.gw-skip { position: absolute; left: -999rem; color: #fff !important; }
a.gw-skip:focus { position: static; left: auto; }
a:focus-visible, button:focus-visible, input[type=range]:focus-visible, [tabindex]:focus-visible,
  .q-field--focused { outline: 3px solid var(--gw-focus) !important; outline-offset: 2px; }
.q-field--focused { outline-offset: -1px; }
.q-header { --gw-focus: #f5a623; }
#content:focus { outline: none !important; }
a.gw-brand { color: inherit; text-decoration: none; }
dl.gw-words dt { font-weight: 600; margin-top: .4rem; }
dl.gw-words dd { margin: 0 0 0 1rem; max-width: 60rem; }
.gw-scroll { overflow-x: auto; max-width: 100%; }
table.gw { border-collapse: collapse; font-variant-numeric: tabular-nums; }
table.gw th, table.gw td { padding: .25rem .6rem; text-align: right; vertical-align: top; }
table.gw caption { white-space: nowrap; text-align: left; }
table.gw caption > div { width: max-content; max-width: calc(100vw - 6rem); white-space: normal;
  position: sticky; left: 0; }
table.gw th { font-weight: 600; white-space: nowrap; }
table.gw th[scope=colgroup] { text-align: center; }
table.gw th[scope=row], table.gw .gw-left { text-align: left; }
table.gw td:not(.gw-left) { white-space: nowrap; }
.gw-cell { width: 6.2rem; }
.gw-cells { overflow: auto; max-height: 70vh; contain: layout paint style; }
.gw-cells th { height: 32px; }
.gw-cells table.gw td, .gw-cells table.gw th { padding: 0 2px; vertical-align: middle; }
.gw-cells input { width: 84px; height: 28px; padding: 0 .4rem; font: inherit; color: inherit;
  background: transparent; border: 1px solid rgba(128,128,128,.45); border-radius: 3px; }
.gw-cells input:focus { outline: 2px solid #f5a623; border-color: transparent; }
.gw-cells input[aria-invalid] { border: 2px solid #c10015; background: rgba(193,0,21,.12); }
.gw-cells input { scroll-margin: 84px 8px 8px 100px; }
.gw-cells table.gw th[scope=col] { max-width: 84px; padding: 0 .4rem; text-align: left;
  white-space: normal; overflow-wrap: anywhere; vertical-align: bottom; line-height: 1.25; }
.gw-cells th[scope=col] { position: sticky; top: 0; background: var(--gw-card); z-index: 2; }
.gw-cells th[scope=col]:first-child { left: 0; z-index: 3; }
.gw-cells .gw-stay { position: sticky; left: 0; background: var(--gw-card); z-index: 1; }
.gw-cells input.gw-picked { outline: 2px solid #1f5f8b; }
.gw-fine { background: rgba(27,122,61,.18); }
.gw-tight { background: rgba(245,166,35,.3); }
.gw-over { background: rgba(193,0,21,.22); font-weight: 600; }
.gw-cells input.gw-fine { background: transparent; }
.gw-cells th span { font-weight: 400; padding: 0 .25rem; border-radius: 3px; }
body { --gw-focus: #b45309; --gw-card: #fff; --gw-text: #333; --gw-shade: #5aa9dd; }
body.body--dark { --gw-focus: #f5a623; --gw-card: #1d1d1d; --gw-text: #ddd; --gw-shade: #2f7fb8; }
.gw-chart text { fill: var(--gw-text) !important; }
.nicegui-link:not(.gw-nav a):not(.gw-brand) { color: #1f5f8b; }
.q-table__bottom { color: var(--gw-text); }
@layer overrides { .q-table__bottom .text-grey-8 { color: var(--gw-text) !important; } }
body.body--dark .text-primary { --q-primary: #8cc4ea; }
body.body--dark .text-negative { --q-negative: #ff9d94; }
body.body--dark .nicegui-link:not(.gw-nav a):not(.gw-brand) { color: #8cc4ea; }
.q-table__container { max-width: 100%; }
.q-field { max-width: 100%; }
[role=heading] { font-weight: 600; line-height: 1.3; }
[role=heading][aria-level="1"] { font-size: 1.5rem; }
[role=heading][aria-level="2"] { font-size: 1.15rem; }
[role=heading][aria-level="3"] { font-size: 1rem; }
table.gw tr { border-bottom: 1px solid rgba(128,128,128,.25); }
.gw-cells table.gw tr { border: 0; }
@layer overrides { .q-btn.disabled { opacity: .4 !important; } }
@media (max-width: 599px) {
  .gw-nav-pages { order: 3; width: 100%; flex-wrap: nowrap; justify-content: space-between; }
  .gw-nav-pages a { padding: .3rem .25rem; font-size: .85rem; }
}
.gw-stats { display: flex; flex-wrap: wrap; gap: .4rem 2.5rem; }
.gw-stat b { display: block; font-size: 1.5rem; line-height: 1.3; font-weight: 600;
  font-variant-numeric: tabular-nums; }
.gw-stat span { opacity: .75; }
.nicegui-markdown { overflow-wrap: break-word; }
.nicegui-markdown h1 { font-size: 1.5rem; font-weight: 600; line-height: 1.3; margin: .5rem 0; }
.nicegui-markdown h2 { font-size: 1.25rem; font-weight: 600; line-height: 1.3; }
.nicegui-markdown h3 { font-size: 1rem; font-weight: 600; }
.nicegui-markdown pre, .nicegui-markdown table { display: block; max-width: 100%;
  overflow-x: auto; }
.nicegui-markdown img { max-width: 100%; height: auto; background: #fff; }
.nicegui-markdown .codehilite .err { border: 0; }
.nicegui-markdown a { color: #1f5f8b; }
body.body--dark .nicegui-markdown a { color: #8cc4ea; }
.gw-quiet { opacity: .75; }
.gw-steady { min-height: 1.5rem; }
.nicegui-code-copy { opacity: 1 !important; }
#popup::after { content: "Runs continue meanwhile: each is a process of its own."; }
"""

SHELL = """
.gw-shell { position: fixed; inset: 0 0 auto; padding: .9rem 1rem; color: #fff; background: #1f5f8b;
  font: 14px Roboto, sans-serif; }
.gw-shell b { font-size: 1.125rem; margin-right: .9rem; }
.gw-shell nav { display: inline; }
.gw-shell a { padding: .5rem .7rem; color: inherit; text-decoration: none; }
"""

UNTIL_THE_PAGE_IS_THERE = """
new MutationObserver((changes, observer) => {
  if (!document.querySelector(".q-header")) return;
  document.querySelector(".gw-shell").remove();
  observer.disconnect();
}).observe(document.body, { childList: true, subtree: true });
"""


@contextmanager
def frame(title: str) -> Iterator[None]:
    """Draw the frame of a page; the ``with`` block draws its content."""
    ui.add_css(STYLE)
    ui.page_title(f"{title} – Gridwright")
    if not ui.context.client.has_socket_connection:
        shell()
    ui.colors(primary="#1f5f8b", positive="#1b7a3d", info="#0b6e8a")  # white text on them: AA
    dark = ui.dark_mode(None)
    with ui.header().classes("items-center gap-2 py-2"):
        ui.link("Skip to the content", "#content").classes("gw-skip")
        ui.link("Gridwright", "/").classes("gw-brand text-lg font-bold mr-2")
        with (
            ui.element("nav")
            .classes("gw-nav gw-nav-pages flex flex-wrap")
            .props('aria-label="Pages"')
        ):
            for name, path in PAGES.items():
                link = ui.link(name, path)
                if name == title:
                    link.props("aria-current=page")
        ui.space()
        with ui.element("nav").classes("gw-nav flex").props('aria-label="Help"'):
            for name, path in {"Help": "/help", "Words": "/help#words"}.items():
                ui.link(name, path)
        ui.button(icon="contrast", on_click=lambda: _turn(dark)).props(
            'flat round dense color=white aria-label="Light or dark"'
        )
    ui.timer(0.01, lambda: _restore(dark), once=True)
    with ui.column().classes("w-full p-2 sm:p-4 gap-4").props("id=content tabindex=-1"):
        heading(title, 1).classes("text-2xl")
        yield


def shell() -> None:
    """Show the top of the page while the browser loads the rest."""
    links = "".join(f'<a href="{path}">{name}</a>' for name, path in PAGES.items())
    ui.add_css(SHELL)
    ui.add_body_html(f'<header class="gw-shell"><b>Gridwright</b><nav>{links}</nav></header>')
    ui.add_body_html(f"<script>{UNTIL_THE_PAGE_IS_THERE}</script>")


IS_DARK = "document.body.classList.contains('body--dark')"


async def _turn(dark: ui.dark_mode) -> None:
    """Switch between light and dark; the browser remembers it for all pages."""
    value = not await ui.run_javascript(IS_DARK)
    await ui.run_javascript(f"localStorage.setItem('dark', '{value}')")
    dark.value = value  # now: somebody who sees it may go to another page at once


async def _restore(dark: ui.dark_mode) -> None:
    with suppress(TimeoutError):  # the user has left the page
        chosen = await ui.run_javascript("localStorage.getItem('dark')")
        if chosen is not None:
            dark.value = chosen == "True"


def tell(error: Exception | str, kind: str = "negative", *, beside: bool = False) -> None:
    """Show a message to the user in place of the last one, or ``beside`` it."""
    options: Any = {"type": kind, "position": "top", "timeout": 8000, "multi_line": True}
    if not beside:
        options |= {"group": "told", "badgeStyle": "display: none"}
    ui.notify(str(error), **options)


@contextmanager
def errors_shown() -> Iterator[None]:
    """Show an error in the ``with`` block to the user instead of raising it."""
    try:
        yield
    except GridwrightError as error:
        tell(error)


async def read_journal(number: int, read: Callable[[Journal], T]) -> T | None:
    """Read a run's journal, which may be long, in a thread; None if the server is ending."""

    def look() -> T:
        with open_journal(number) as journal:
            return read(journal)

    return await background.io_bound(look)


async def confirmed(question: str, yes: str) -> bool:
    """Ask before something that cannot be undone; ``yes`` is the text of the button for it."""
    with ui.dialog() as dialog, ui.card():
        ui.label(question)
        with ui.row():
            ui.button(yes, on_click=lambda: dialog.submit(True)).props("color=negative")
            ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat autofocus")
    answer = await dialog
    if not dialog.is_deleted:  # the page may have been closed
        dialog.delete()
    return bool(answer)


class Picker(ui.select):
    """A list to choose from by typing; typed text that matches nothing is never ignored."""

    def __init__(self, options: dict[str, str], label: str, value: str | None) -> None:
        super().__init__(options, label=label, value=value, with_input=True)
        self.without_auto_validation()
        self.props("input-debounce=0")  # a list that is shown later would open after Enter
        self.typed = ""
        """What the field shows, if it was typed; empty once it has become a choice."""
        self.on("input-value", lambda event: self._note(str(event.args or "")))
        self.on("keydown.enter", self._take_or_show)
        self.on("blur", self._settle)
        self.on_value_change(self._chosen)

    def chosen(self) -> str:
        """Return the choice; raise an error if what was typed is not one of the options."""
        self._settle()
        if self.error:
            raise InputError(self.error)
        return str(self.value or "")

    def _note(self, text: str) -> None:
        self.typed = "" if text in self._choices().values() else text.strip()

    def _chosen(self) -> None:
        if self.value is not None:
            self.typed, self.error = "", None

    def _choices(self) -> dict[Any, str]:
        return self.options if isinstance(self.options, dict) else {}

    def _matches(self) -> list[Any]:
        """Return the option of that name, or all whose label contains what was typed."""
        text = self.typed.casefold()
        same = [key for key in self._choices() if str(key).casefold() == text]
        return same or [key for key, each in self._choices().items() if text in each.casefold()]

    def _take_or_show(self) -> None:
        self._take_sole()
        if self.typed:
            self.run_method("showPopup")  # Enter has closed an open list

    def _take_sole(self) -> None:
        found = self._matches() if self.typed else []
        if len(found) == 1:
            self.value = found[0]
            self.run_method("updateInputValue", self._choices()[found[0]], True)
            self.run_method("hidePopup")

    def _settle(self) -> None:
        """Choose what was typed; if that is impossible, choose nothing and say so."""
        if not self.typed:
            return
        self._take_sole()
        if self.typed:
            number = len(self._matches())
            which = f"matches {number} entries; choose one" if number else "matches nothing here"
            self.error, self.typed, self.value = f"{self.typed[:60]!r} {which}", "", None


def run_number(text: str) -> int | None:
    """Return the number of a run in an address; None if it is none.

    >>> run_number("12"), run_number("abc"), run_number("-1")
    (12, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def heading(text: str, level: int = 2) -> ui.label:
    """Make a heading."""
    return ui.label(text).props(f"role=heading aria-level={level}")


def offer(chosen: ui.select, options: list[str] | dict[Any, str]) -> None:
    """Change what a list offers; keep the choice if it is still there, else take the first."""
    if not chosen.is_deleted and chosen.options != options:
        kept = chosen.value if chosen.value in options else next(iter(options), None)
        chosen.set_options(options, value=kept)


def figure(value: Any, form: str = ".4g") -> str:
    """Format a number; None and NaN are empty.

    >>> figure(0.123456), figure(12345.6), figure(12345), figure(None)
    ('0.1235', '12,346', '12,345', '')
    """
    if value is None or value != value:
        return ""
    if form == ".4g" and (isinstance(value, int) or 1000 <= abs(value) < 1e15):
        return f"{value:,.0f}"
    return f"{value:{form}}"


def columns_of(
    names: Iterable[str], labels: Mapping[str, str] = MappingProxyType({}), **more: Any
) -> list[dict[str, Any]]:
    """Return the columns of a table; a column without a label is called by its name."""
    return [
        {"name": name, "label": labels.get(name, name), "field": name, "align": "left", **more}
        for name in names
    ]


def html_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Show a table; the first column has the heads of the rows. Numbers are aligned right."""
    rows = list(rows)
    sides = ["gw-left", *(_side([row[k] for row in rows]) for k in range(1, len(heads)))]
    box = ui.element("div").classes("gw-scroll w-full").props("tabindex=0 role=group")
    box.props["aria-label"] = title or "Table"  # the keyboard scrolls it, if it is wide
    with box, ui.element("table").classes("gw"):
        if title:
            with ui.element("caption"):
                ui.label(title)
        with ui.element("tr"):
            for text, side in zip(heads, sides, strict=True):
                column_head(text).classes(side)
        for row in rows:
            with ui.element("tr"):
                for k, (cell, side) in enumerate(zip(row, sides, strict=True)):
                    made = ui.element("td") if k else ui.element("th").props("scope=row")
                    with made.classes(side):
                        ui.label(cell) if isinstance(cell, str) else ui.link(*cell)


def _side(cells: Sequence[Cell]) -> str:
    """Return the class of a column: words begin at the left, numbers end at the right.

    >>> _side(["", "1.5", "+2 %", "–"]), _side(["mct", "1"])
    ('', 'gw-left')
    """
    is_number = [isinstance(each, str) and not each.strip("–")[:1].isalpha() for each in cells]
    return "" if all(is_number) else "gw-left"


def table_row(*heads: str) -> ui.element:
    """Make a row of a table that begins with heads of columns."""
    with ui.element("tr") as row:
        for text in heads:
            column_head(text)
    return row


def column_head(text: str) -> ui.element:
    """Make the head of a column."""
    with ui.element("th").props("scope=col") as head:
        ui.label(text)
    return head


def model_input(field: FormField) -> Any:
    """Make an input for a field of a model: a list to choose from, a number or a text."""
    made: Any
    if field.choices:
        made = ui.select(dict(field.choices), label=field.label, value=field.default)
    elif field.kind in ("number", "whole"):
        made = ui.number(field.label, value=field.default)
    else:
        made = ui.input(field.label, value=field.text)
    made.props["aria-label"] = field.label  # without the hint
    made.props["hint"] = field.hint
    return made.classes("w-56")


def read_input(field: FormField, made: Any) -> Any:
    """Return what was filled in; raise an error if a number is missing or not a whole one."""
    value = made.value
    if field.kind not in ("number", "whole"):
        return str(value or "").strip()
    if (value is None and field.default is not None) or (field.kind == "whole" and value % 1):
        expected = "a whole number" if field.kind == "whole" else "a number"
        shown = "empty" if value is None else value
        raise InputError(f"{field.label} is {shown}; expected {expected}")
    return int(value) if field.kind == "whole" else value


def system_choices() -> dict[str, str]:
    """List the systems to choose from: the saved ones first, then the catalogue."""
    own = {f"{OWN}{name}": line for name, line in saved_lines().items()}
    known = {each.name: label_of(each) for each in entries() if each.parts}
    return own | known


def system_named(name: str | None) -> System:
    """Return the system of a choice."""
    if not name:
        raise InputError("no system is chosen")
    if name.startswith(OWN):
        return load_saved(name.removeprefix(OWN))
    return system_of(name)
