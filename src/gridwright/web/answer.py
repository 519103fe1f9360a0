"""What the API answers: JSON in which what is not a finite number is null."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """Turn a value into plain JSON.

    >>> plain({"mean": float("nan"), "shares": np.array([[0.5, 1.0]])})
    {'mean': None, 'shares': [[0.5, 1.0]]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
