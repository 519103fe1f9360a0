"""The help page: what the pages are for, the keys, and the words."""

import re
from html import escape

from nicegui import ui

from ...reproduction import shipped
from ..services import Services
from .frame import frame, heading, html_table

ABOUT = (
    (("Define", "/define"), "a system: its classes, machines and rates; the experiment around it"),
    (("Simulate", "/simulate"), "policies on one system; results have an address of their own"),
    (("Run", "/run"), "an experiment on real machines, which you watch and operate"),
    (("Statistics", "/statistics"), "past runs, by class and beside their simulated twins"),
    (("Learn", "/learn"), "guided stops: watch tasks flow, predict, and check"),
    (("Published", "/published"), "every printed number beside ours, with a verdict"),
)
KEYS = (
    ("Tab, Shift+Tab", "go to the next or the previous field, link or button"),
    ("Enter", "in a list: take the entry if it is the only match; in a table: go down a row"),
    ("arrows", "in a table: go to the next cell; in a list: go to the next entry"),
    ("Escape", "close a list or a dialog"),
)


def help_page(services: Services) -> None:
    """Show the help."""
    with frame("Help"):
        html_table("", ("page", "what it is for"), ABOUT)
        heading("Keys").classes("text-lg")
        html_table("", ("key", "what it does"), KEYS)
        heading("Words").classes("text-lg").props("id=words")
        for title, rows in glossary():
            heading(title, 3).classes("text-base font-bold")
            with ui.element("dl").classes("gw-words"):
                for word, meaning in rows:
                    ui.html(f"<dt>{word}</dt><dd>{meaning}</dd>", sanitize=False)


def glossary() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the words of each section of docs/reference/words.md, with their meanings, as HTML."""
    found = []
    _, *sections = shipped("reference/words.md").read_text("utf-8").split("\n## ")
    for section in sections:
        title, _, text = section.partition("\n")
        cells = re.findall(r"^\| (\*\*.*?) \| (.*) \|$", text, re.M)
        found.append((title, [(_html(word), _html(meaning)) for word, meaning in cells]))
    return found


def _html(text: str) -> str:
    r"""Return the HTML of a line of Markdown: bold, emphasis, code, links as their texts.

    >>> _html(r"**capacity** is `x` [λ\*], *far* [below](there.md)")
    '<b>capacity</b> is <code>x</code> [λ*], <i>far</i> below'
    """
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", escape(text, quote=False))
    text = text.replace(r"\*", "\0")
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"\*(.+?)\*", r"<i>\1</i>", text)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text).replace("\0", "*")
