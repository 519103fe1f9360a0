"""A user's own Python file, loaded as a module."""

import sys
from hashlib import blake2b
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from .error import InputError

__all__ = ["load_module"]


def load_module(path: Path) -> ModuleType:
    """Run a Python file and return it as a module; what is wrong in it is told in one line.

    The file is run anew at every call, so that an edited file is never served stale.
    """
    path = path.resolve()
    if not path.is_file():
        raise InputError(f"no file {path}")
    digest = blake2b(str(path).encode(), digest_size=6).hexdigest()
    spec = spec_from_file_location(f"{path.stem}_{digest}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module  # where pickle and annotations look a class up
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(f"{path}, line {error.lineno}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        lines = [
            frame.lineno
            for frame in extract_tb(error.__traceback__)
            if Path(frame.filename) == path
        ]
        where = f", line {lines[-1]}" if lines else ""
        raise InputError(f"{path}{where}: {type(error).__name__}: {error}") from None
    return module
