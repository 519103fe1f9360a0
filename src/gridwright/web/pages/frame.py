"""What every page shares: navigation, light and dark, messages, inputs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
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
STYLE = Path(__file__).with_name("frame.css").read_text("utf-8")

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
    """Style the page, and show its top while the browser loads the rest."""
    ui.add_css(STYLE)
    links = "".join(f'<a href="{path}">{name}</a>' for name, path in PAGES.items())
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
