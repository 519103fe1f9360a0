"""What is being edited in a tab of the browser: kept on disk, so that a restart loses nothing."""

import json
import re
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..grid.ownership import home

MOST_DRAFTS = 200
"""Files; the oldest are deleted first."""
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
