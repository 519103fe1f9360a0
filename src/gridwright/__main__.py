"""``python -m gridwright`` is the ``gridwright`` command."""

from .cli import main

main()
