"""The command line: shows and starts things, holds no logic."""

from .main import main

__all__ = ["main"]
