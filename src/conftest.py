"""Collect doctests from the files that have some: to look at the others takes a second."""

from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Ignore files without examples."""
    is_code = collection_path.suffix == ".py"
    return True if is_code and ">>>" not in collection_path.read_text("utf-8") else None
