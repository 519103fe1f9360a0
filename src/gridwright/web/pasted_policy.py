"""Policies pasted as code, which runs on this computer."""

import re
from hashlib import blake2b
from pathlib import Path
from threading import Thread

from ..grid.ownership import home
from ..model import InputError
from ..model.error import file_errors
from ..model.user_file import load_module
from ..policies import Policy

NAME = "pasted.py"
"""The name of the code in messages."""
LONGEST_CODE = 100_000
PATIENCE = 5.0
"""Seconds that the code may take to define its functions."""


def paste(code: str) -> tuple[Policy, ...]:
    """Run code and return the policies that it defines; errors name the line."""
    if len(code) > LONGEST_CODE:
        raise InputError(f"the code has {len(code):,} characters; expected {LONGEST_CODE:,}")
    path = _keep(code)
    found: list[tuple[Policy, ...] | InputError] = []

    def load() -> None:
        try:
            found.append(_policies(path))
        except InputError as error:
            found.append(InputError(str(error).replace(str(path.resolve()), NAME)))

    thread = Thread(target=load, name="pasted", daemon=True)  # it may never return
    thread.start()
    thread.join(PATIENCE)
    if not found:
        raise InputError(f"{NAME} does not end; expected functions, not a program")
    (one,) = found
    if isinstance(one, InputError):
        raise one
    return one


def paste_one(code: str) -> str:
    """Run code that defines one policy; return the name by which a run finds it."""
    found = paste(code)
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise InputError(f"the code has {len(found)} policies, {names}; expected one")
    return f"{found[0].decide.__code__.co_filename}:{found[0].name}"


def is_pasted(policy: str) -> bool:
    """Tell whether the name of a policy is that of pasted code."""
    return Path(policy.partition(":")[0]).is_relative_to((home() / "pasted").resolve())


def line_of(error: str) -> int | None:
    """Return the line of the code that an error is about.

    >>> line_of("pasted.py, line 3: invalid syntax"), line_of("no policy 'mtc'")
    (3, None)
    """
    found = re.search(rf"{re.escape(NAME)}, line (\d+)", error)
    return int(found[1]) if found else None


def _keep(code: str) -> Path:
    """Write the code to a file: the compile cache and error messages need its path."""
    folder = home() / "pasted" / blake2b(code.encode(), digest_size=8).hexdigest()
    path = folder / NAME
    with file_errors(path, "written"):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    return path


def _policies(path: Path) -> tuple[Policy, ...]:
    module = load_module(path)
    found = tuple(
        value
        for value in vars(module).values()
        if isinstance(value, Policy) and value.decide.__module__ == module.__name__
    )
    if not found:
        raise InputError(f"{NAME} has no policy; decorate its function, with @push or @pull")
    return found
