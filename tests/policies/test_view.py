"""Records of views behave as NumPy's own, in plain Python."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import typeof

from gridwright.policies.view import CLASS, MACHINE, WAITING, Record, Records, records

PATHS: list[Callable[[Any], Any]] = [
    lambda array: array,
    lambda array: array[1:],
    lambda array: array[::-2],
    lambda array: array[[2, 0]],
    lambda array: array[array["arrived"] > 1],
    lambda array: array.copy(),
    copy.deepcopy,
    lambda array: pickle.loads(pickle.dumps(array)),
    lambda array: np.concatenate([array, array]).view(type(array)),
]


def both() -> tuple[Any, Any]:
    """Return the same records, as ours and as NumPy's."""
    ours = records(3, CLASS)
    for k, name in enumerate(CLASS.names or ()):
        ours[name] = [k, k + 1, 2]
    return ours, np.array(ours, CLASS).view(np.recarray)


@pytest.mark.parametrize("path", PATHS)
def test_records_read_and_write_as_those_of_numpy(path: Callable[[Any], Any]) -> None:
    ours, theirs = map(path, both())
    assert type(ours) is Records
    assert type(theirs) is np.recarray
    assert typeof(ours) == typeof(theirs)
    for name in CLASS.names or ():
        field, known = getattr(ours, name), getattr(theirs, name)
        assert (type(field), field.dtype, field.tolist()) == (
            np.ndarray,
            known.dtype,
            known.tolist(),
        )
        assert type(ours[name]) is np.ndarray
        for one, other in zip(ours, theirs, strict=True):
            assert type(one) is Record
            assert type(getattr(one, name)) is type(getattr(other, name))
            assert getattr(one, name) == getattr(other, name) == one[name]
        for array in (ours, theirs):
            array[0][name] = 7
            setattr(array[-1], name, 8.0)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("dtype", [MACHINE, CLASS, WAITING], ids=["machine", "class", "waiting"])
def test_wrong_names_and_values_are_refused_as_by_numpy(dtype: Any) -> None:
    def told(array: Any) -> list[str]:
        array.flags.writeable = False
        name, found = dtype.names[1], []
        for wrong in (
            lambda: array[0].nothing,
            lambda: array.nothing,
            lambda: array[0]["nothing"],
            lambda: setattr(array[0], "nothing", 1),
            lambda: setattr(array[0], name, 1),
            lambda: array[99],
        ):
            with pytest.raises((AttributeError, IndexError, ValueError)) as refused:
                wrong()
            found.append(f"{refused.type.__name__}: {refused.value}")
        return found

    assert told(records(2, dtype)) == told(np.zeros(2, dtype).view(np.recarray))
