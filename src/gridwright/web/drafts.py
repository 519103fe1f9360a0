"""What is being edited: kept on disk, so that a reload or a restart of the server loses nothing.

A tab of the browser keeps its forms (``Draft``), and which definition it edits. Definitions are
kept with their earlier and later versions (``History``), and any tab can open them.
"""

import json
import re
import sqlite3
from collections.abc import Iterator, MutableMapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, Self

from ..grid.ownership import home
from ..model import InputError

MOST_DRAFTS = 200
"""Drafts of tabs, and definitions; the oldest are deleted first."""
MOST_VERSIONS = 100
"""Versions of a definition; fewer of a large one."""
MOST_CHARACTERS = 20_000_000
"""Characters of all versions of a definition."""
LONGEST_DRAFT = 5_000_000
"""Characters; a longer draft is kept only until the server ends."""
TAB = re.compile(r"[0-9a-fA-F-]{8,64}")


class Draft(MutableMapping[str, Any]):
    """The draft of a tab: a mapping of JSON values, written to a file when it changes."""

    def __init__(self, tab: str) -> None:
        self._path = home() / "drafts" / f"{tab}.json" if TAB.fullmatch(tab) else None
        self._words: dict[str, Any] = {}
        if self._path is not None:
            with suppress(OSError, ValueError):  # there is none, or it is damaged
                found = json.loads(self._path.read_text("utf-8"))
                self._words = found if isinstance(found, dict) else {}

    def __getitem__(self, key: str) -> Any:
        """Return a value."""
        return self._words[key]

    def __setitem__(self, key: str, value: Any) -> None:
        """Keep a value, which is plain JSON."""
        if self._words.get(key) != value:
            self._words[key] = value
            self._write()

    def __delitem__(self, key: str) -> None:
        """Forget a value."""
        del self._words[key]
        self._write()

    def __iter__(self) -> Iterator[str]:
        """Return the keys."""
        return iter(self._words)

    def __len__(self) -> int:
        """Count the values."""
        return len(self._words)

    def _write(self) -> None:
        text = json.dumps(self._words)
        if self._path is None or len(text) > LONGEST_DRAFT:
            return
        with suppress(OSError):  # a full disk must not stop the page
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._path.exists():
                _make_room(self._path.parent)
            new = self._path.with_suffix(".new")
            new.write_text(text, "utf-8")
            new.replace(self._path)


def _make_room(folder: Path) -> None:
    """Delete the oldest drafts, so that there is room for one more."""
    known = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in known[: max(len(known) - MOST_DRAFTS + 1, 0)]:
        path.unlink(missing_ok=True)


TABLES = """
create table if not exists draft (
    key text primary key, name text, size text, changed text,
    shown integer, last integer, saved integer, edited integer, stamp text);
create table if not exists version (
    draft text, number integer, document text, primary key (draft, number));
"""


class Kept(NamedTuple):
    """A draft in a list."""

    key: str
    name: str
    size: str
    """The system's size in words."""
    changed: str
    """When, in UTC."""
    is_saved: bool


class History:
    """The versions of a definition that is being edited; one of them is shown."""

    def __init__(self, document: dict[str, Any]) -> None:
        """Begin a draft; it is kept once it has a second version."""
        self.key, self._stamp = token_hex(8), ""
        self._text = json.dumps(document)
        self.first = self.shown = self.last = 0
        """The numbers of versions."""
        self.saved: int | None = 0
        """The version that is saved, or was loaded; None if it is gone."""
        self.edited = self.is_apart = False
        """Whether it was changed by hand; whether another tab went on with the same draft."""

    @classmethod
    def open(cls, key: str) -> Self | None:
        """Return a draft that is kept; None if there is none."""
        with _database() as database:
            row = database.execute("select * from draft where key = ?", (key,)).fetchone()
            if row is None:
                return None
            made = cls({})
            made.key, made._stamp, made.edited = key, row["stamp"], bool(row["edited"])
            made.shown, made.last, made.saved = row["shown"], row["last"], row["saved"]
            made._prune(database)
            made._text = made._version(database, made.shown)
        return made

    @property
    def document(self) -> dict[str, Any]:
        """The version that is shown."""
        found: dict[str, Any] = json.loads(self._text)
        return found

    @property
    def is_saved(self) -> bool:
        """Whether the version that is shown is saved, or was loaded."""
        return self.shown == self.saved

    @property
    def can_undo(self) -> bool:
        """Whether there is an earlier version."""
        return self.shown > self.first

    @property
    def can_redo(self) -> bool:
        """Whether there is a later version."""
        return self.shown < self.last

    def add(self, document: dict[str, Any], size: str = "", *, edited: bool = True) -> None:
        """Keep a new version, and forget those that were undone; nothing if nothing changed."""
        text = json.dumps(document)
        if text == self._text:
            return
        with _database() as database:
            self._claim(database)
            if self.saved is not None and self.saved > self.shown:
                self.saved = None
            sql = "delete from version where draft = ? and number > ?"
            database.execute(sql, (self.key, self.shown))
            self.shown = self.last = self.shown + 1
            self._text, self.edited = text, self.edited or edited
            database.execute("insert into version values (?, ?, ?)", (self.key, self.last, text))
            self._prune(database)
            name = str(document.get("name", ""))
            sql = "update draft set name = ?, size = ?, changed = ? where key = ?"
            now = datetime.now(UTC).isoformat(timespec="microseconds")
            database.execute(sql, (name, size, now, self.key))
            self._write(database)

    def go(self, step: int) -> None:
        """Show an earlier version (-1) or a later one (1), if there is one."""
        with _database() as database:
            self._claim(database)
            if self.first <= self.shown + step <= self.last:
                self.shown += step
                self._text = self._version(database, self.shown)
            self._write(database)

    def mark_saved(self) -> None:
        """Note that the version that is shown is saved."""
        self.saved = self.shown
        with _database() as database:
            self._claim(database)
            self._write(database)

    def delete(self) -> None:
        """Forget all versions."""
        with _database() as database:
            _forget(database, [self.key])

    # details

    def _claim(self, database: sqlite3.Connection) -> None:
        """Begin a draft of one's own if this one is new, or if another tab has changed it."""
        sql = "select stamp from draft where key = ?"
        row = database.execute(sql, (self.key,)).fetchone()
        if row is not None and row["stamp"] == self._stamp:
            return
        if self._stamp:
            self.key, self.is_apart = token_hex(8), True
            self.saved = self.shown if self.is_saved else None
            self.first = self.last = self.shown
        old = database.execute("select key from draft order by changed desc").fetchall()
        _forget(database, [each["key"] for each in old[MOST_DRAFTS - 1 :]])
        values = (self.key, "", "", "", self.shown, self.last, self.saved, self.edited, "")
        database.execute("insert into draft values (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        first = (self.key, self.shown, self._text)
        database.execute("insert into version values (?, ?, ?)", first)

    def _write(self, database: sqlite3.Connection) -> None:
        self._stamp = token_hex(8)
        sql = "update draft set shown = ?, last = ?, saved = ?, edited = ?, stamp = ? where key = ?"
        values = (self.shown, self.last, self.saved, self.edited, self._stamp, self.key)
        database.execute(sql, values)

    def _prune(self, database: sqlite3.Connection) -> None:
        """Forget the oldest versions, if there are many or long ones."""
        most = max(2, min(MOST_VERSIONS, MOST_CHARACTERS // max(len(self._text), 1)))
        sql = "delete from version where draft = ? and number <= ?"
        database.execute(sql, (self.key, self.last - most))
        sql = "select min(number) from version where draft = ?"
        (self.first,) = database.execute(sql, (self.key,)).fetchone()

    def _version(self, database: sqlite3.Connection, number: int) -> str:
        sql = "select document from version where draft = ? and number = ?"
        return str(database.execute(sql, (self.key, number)).fetchone()["document"])


def kept_drafts() -> list[Kept]:
    """List the drafts that were changed by hand, the latest first."""
    sql = """select key, name, size, changed, shown is saved as is_saved from draft
        where edited order by changed desc"""
    with _database() as database:
        rows = database.execute(sql).fetchall()
    return [Kept(**{**row, "is_saved": bool(row["is_saved"])}) for row in rows]


def _forget(database: sqlite3.Connection, keys: list[str]) -> None:
    for key in keys:
        database.execute("delete from version where draft = ?", (key,))
        database.execute("delete from draft where key = ?", (key,))


@contextmanager
def _database() -> Iterator[sqlite3.Connection]:
    """Open the drafts; what the block does is kept as a whole."""
    path = home() / "drafts" / "definitions.sqlite"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=10)) as database, database:
            database.row_factory = sqlite3.Row
            database.execute("pragma synchronous = normal")
            database.executescript(TABLES)
            database.execute("begin immediate")
            yield database
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"{path}: the draft cannot be kept: {error}") from None
