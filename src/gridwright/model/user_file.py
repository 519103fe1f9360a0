"""Load a user's own Python file as a module."""

import sys
from hashlib import blake2b
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from .error import InputError, file_errors


def load_module(path: Path) -> ModuleType:
    """Run a Python file and return it as a module; an error in it is an InputError of one line.

    A file is run once, and again as another module when it has changed.
    """
    path = path.resolve()
    with file_errors(path, "read"):
        contents = path.read_bytes()
    digest = blake2b(bytes(path) + b"\0" + contents, digest_size=8).hexdigest()
    name = f"{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file")
    module = module_from_spec(spec)
    module.__contents__ = contents  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module  # where pickle and annotations look a class up
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        del sys.modules[name]
        raise InputError(f"{path}, line {error.lineno}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        frames = extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == path]
        where = f", line {lines[-1]}" if lines else ""
        raise InputError(f"{path}{where}: {type(error).__name__}: {error}") from None
    return module


def contents_of(module: str) -> tuple[str, bytes] | None:
    """Return the name and contents of the user's file of a module; None if there is none."""
    loaded = sys.modules.get(module)
    contents = getattr(loaded, "__contents__", None)
    return None if contents is None else (Path(str(loaded.__file__)).name, contents)  # type: ignore[union-attr]
