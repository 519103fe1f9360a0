"""Validate the arguments of a Grid and of its submit method."""

from __future__ import annotations

import io
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import InputError, did_you_mean
from ..policies import BATCH, CHAIN, Policy
from . import command
from .chain import ChainOptions, KnownChains, chains_of
from .execution_times import BatchOptions, ExecutionTimes, times_of
from .executors import Executor
from .executors.local import LocalExecutor
from .future import FutureInArgumentsError, JobFuture
from .script_modules import with_script_modules
from .settings import Corrections
from .slots import Slots, slots_on
from .state import SLOWEST
from .worker import LARGEST

MACHINES = 2
"""Local processes by default."""
LONGEST_NAME = 1000
"""The most characters that a name may have."""


def executor_of(
    on: Executor | str | None,
    machines: int | Sequence[str] | None,
    slots: Slots = 1,
    **options: Any,
) -> Executor:
    """Return the executor for a place: local processes, a cluster's workers, or itself.

    ``options`` are further arguments of the executor that is made.
    """
    if on is not None and not isinstance(on, str):
        if machines is not None or slots != 1:
            what = "slots" if machines is None else "machines"
            raise InputError(f"on is an executor, which has its machines; do not give {what} too")
        return on
    if isinstance(machines, str) or (isinstance(machines, Sequence) and not machines):
        raise InputError(f"machines is {machines!r}; expected a number, or a list of names")
    if isinstance(machines, Sequence):
        machines = names_of(machines, "machines")
    elif machines is not None and (type(machines) is not int or machines < 1):
        raise InputError(f"machines is {machines!r}; expected a whole number, at least 1")
    if not on:
        return LocalExecutor(machines or (MACHINES if slots == 1 else 1), slots=slots, **options)
    from .executors.dask import DaskExecutor

    return DaskExecutor(on, machines, slots=slots, **options)


def renamed_place(
    on: Executor | str | None, executor: Executor | str | None, address: str, caller: str
) -> Executor | str | None:
    """Return what ``on`` is if the deprecated ``executor`` or ``address`` was given in its place.

    ``caller`` names what was called, for the warning.
    """
    if on == "":
        raise InputError("on is empty; expected tcp://HOST:PORT, or None for this computer")
    if executor is None and not address:
        return on
    if on is not None:
        raise InputError("executor and address are deprecated names for on; give on alone")
    if address and executor not in (None, "dask"):
        raise InputError("address is for the executor 'dask'")
    if executor == "dask" and not address:
        raise InputError("the executor 'dask' needs the address of a scheduler: on='tcp://…'")
    if isinstance(executor, str) and executor not in ("local", "dask"):
        raise InputError(f"executor is {executor!r}; expected local or dask")
    warnings.warn(
        f"the keywords executor and address of {caller} are deprecated, and the next release "
        "removes them; use on='tcp://HOST:PORT' for a cluster, or on=EXECUTOR",
        FutureWarning,  # shown by default, also for a key of an experiment file
        stacklevel=3,
    )
    return address or (None if executor == "local" else executor)


def names_of(names: Sequence[str], what: str) -> list[str]:
    """Return the names as a list; each must be valid and occur once."""
    if isinstance(names, str):
        raise InputError(f"{what} is {names!r}; expected a list of names")
    for k, name in enumerate(names):
        check_name(name, f"{what}[{k}]")
        if name in names[:k]:
            raise InputError(f"{what} has {name!r} twice")
    return list(names)


def pickled(
    function: Any,
    args: Any,
    kwargs: Any,
    owns: Callable[[JobFuture], bool],
    *,
    with_modules: bool = False,
) -> tuple[bytes, tuple[int, ...]]:
    """Pickle a call in the form that workers unpickle, with modules beside the script if wanted.

    Also return the numbers of the jobs whose futures are among the arguments; ``owns`` tells
    whether a future is of this grid.
    """
    try:
        import cloudpickle
    except ImportError:
        raise InputError("a grid needs cloudpickle: pip install 'gridwright[grid]'") from None
    if isinstance(function, str):
        try:
            words = shlex.split(function)
        except ValueError:
            words = function.split()
        raise InputError(
            f"submit takes a function and its arguments, not the text {function!r}; "
            f"for a command: run({shlex.join(words)!r})"
        )
    if not callable(function):
        raise InputError(
            f"submit takes a function and its arguments; {type(function).__name__} cannot be called"
        )
    command.travels_by_value()
    needs: tuple[int, ...] = ()
    try:
        try:
            work = bytes(cloudpickle.dumps((function, args, kwargs)))
        except FutureInArgumentsError:
            work, needs = with_futures((function, args, kwargs), owns)
    except InputError:
        raise
    except Exception as error:
        name = getattr(function, "__name__", function)
        raise InputError(f"{name} and its arguments cannot be pickled: {error}") from None
    if with_modules:
        work = with_script_modules(work, always=bool(needs))
    if len(work) > LARGEST:
        raise InputError(f"the pickled call has {len(work):,} bytes; expected at most {LARGEST:,}")
    return work, needs


def with_futures(what: Any, owns: Callable[[JobFuture], bool]) -> tuple[bytes, tuple[int, ...]]:
    """Pickle something with the number of a job in place of its future; return the numbers too."""
    import cloudpickle

    needs: dict[int, None] = {}

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def persistent_id(self, each: Any) -> int | None:
            if not isinstance(each, JobFuture):
                return None
            if not owns(each):
                raise InputError(f"job {each.number} is of another grid; give its result instead")
            needs[each.number] = None
            return each.number

    written = io.BytesIO()
    Pickler(written).dump(what)
    return written.getvalue(), tuple(needs)


def check_name(name: str, what: str) -> None:
    """Check that a name is a text of Unicode that is not too long."""
    if not isinstance(name, str) or not name:
        raise InputError(f"{what} is {name!r}; expected a name")
    if len(name) > LONGEST_NAME:
        raise InputError(f"{what} has {len(name):,} characters; expected at most {LONGEST_NAME:,}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} is {name!r}, which is not valid Unicode") from None


def check_machine(name: str, executor: Executor) -> None:
    """Check that a grid has the machine that a job is meant for, if it is meant for one."""
    machines = executor.machines
    if name and name not in machines and not slots_on(executor, name):
        hint = did_you_mean(name, machines) or f"; there are {', '.join(machines)}"
        raise InputError(f"no machine {name!r}{hint}")


def knowledge_of(
    policy: Policy,
    batch: BatchOptions | Mapping[str, Any] | None,
    chains: ChainOptions | Mapping[str, Any] | None,
    classes: Sequence[str],
    rates: Any,
    hosts: Sequence[str],
    corrections: Corrections,
) -> ExecutionTimes | KnownChains | None:
    """Return what a batch or chain policy is to know of jobs; None for other policies."""
    known = chains_of(policy, chains, hosts)
    if known is not None and classes:
        raise InputError("classes and rates follow from the templates of chains; leave them out")
    times = times_of(policy, batch, classes, rates, hosts, learns=corrections.rates)
    return times if known is None else known


def check_kind(deadline: float | None, stage: int, policy: Policy) -> None:
    """Refuse jobs of another kind than the policy's, and deadlines of which it does not know."""
    if policy.kind is CHAIN and not stage:
        raise InputError(f"this grid runs {policy.name}, a chain policy; use submit_chain")
    if deadline is not None and policy.kind not in (BATCH, CHAIN):
        raise InputError(
            f"deadline is for batch and chain policies; this grid runs {policy.name}, "
            f"a {policy.kind} policy"
        )


def checked_retries(retries: Any) -> int:
    """Check how often a job is tried again."""
    if type(retries) is not int or retries < 0:
        raise InputError(f"retries is {retries!r}; expected a whole number, 0 or more")
    return retries


def rates_of(rates: Any, classes: Sequence[str], hosts: Sequence[str]) -> NDArray[np.float64]:
    """Return the initial rates of slots, given those of machines; without any, all are 1.

    ``hosts`` names the machine of each slot.
    """
    if rates is None:
        return np.ones((len(classes), len(hosts)))
    machines = list(dict.fromkeys(hosts))
    shape = (len(classes), len(machines))
    try:
        found = np.array(rates, dtype=float)
    except (TypeError, ValueError):
        raise InputError("rates is not a matrix of numbers; expected [class, machine]") from None
    if found.shape != shape:
        raise InputError(
            f"rates has shape {found.shape}; expected a row for each of {shape[0]} classes "
            f"with a number for each of {shape[1]} machines"
        )
    if not (np.isfinite(found) & (found >= 0)).all():
        raise InputError("rates has a number that is negative or not finite; expected 0 or more")
    able = found[found > 0]
    if not ((able >= SLOWEST) & (able <= 1 / SLOWEST)).all():
        raise InputError(f"rates has a number that is neither 0 nor {SLOWEST:g} to {1 / SLOWEST:g}")
    for name, row in zip(classes, found, strict=True):
        if machines and not row.any():
            raise InputError(f"no machine can run class {name!r}: its rates are all 0")
    return np.ascontiguousarray(found[:, [machines.index(host) for host in hosts]])
