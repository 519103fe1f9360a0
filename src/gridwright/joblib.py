"""A backend for joblib: importing this module registers it under the name ``gridwright``.

Then ``joblib.parallel_config("gridwright", grid="farm")`` chooses it for the calls in its block.
"""

from __future__ import annotations

import weakref
from concurrent.futures import CancelledError
from threading import Thread
from typing import Any

from joblib.parallel import ParallelBackendBase, register_parallel_backend

from .grid import Client, Grid, JobFuture, connect
from .grid.submitter import Submitter, name_of


class GridBackend(ParallelBackendBase):  # type: ignore[misc]
    """Runs the calls of ``joblib.Parallel`` on a grid.

    ``grid`` is a `Grid`, a `Client`, or what `connect` takes. Without it, a grid of as many local
    processes as there are processors is opened, and closed with the backend.
    """

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(
        self,
        grid: Submitter | str | None = None,
        nesting_level: int | None = None,
        inner_max_num_threads: int | None = None,
    ) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._given, self._grid = grid, grid if isinstance(grid, Submitter) else None
        self._pending: set[JobFuture] = set()

    @property
    def grid(self) -> Submitter:
        """The grid, which is opened when it is first used."""
        if self._grid is None:
            import os

            own = connect(self._given) if isinstance(self._given, str) else None
            self._grid = own or Grid(machines=1, slots=os.cpu_count() or 1)
            weakref.finalize(self, _shut_down, self._grid)
        return self._grid

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many calls may run at once; with 1, joblib would not use the grid."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        whole = self.grid._whole()
        if isinstance(whole, Client):
            machines = len(whole.machines)
        else:
            machines = len(whole.status()["machines"]) if isinstance(whole, Grid) else 2
        wanted = machines if n_jobs is None or n_jobs < 0 else min(n_jobs, machines)
        return max(wanted, 2)

    def submit(self, func: Any, callback: Any = None) -> JobFuture:
        """Submit a batch of calls; its class is the name of their function."""
        first = func.items[0][0]
        name = name_of(getattr(first, "function", first))
        future = self.grid.options(task_class=name).submit(func)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    apply_async = submit

    def retrieve_result_callback(self, out: JobFuture) -> Any:
        """Return the results of a batch."""
        try:
            return out.result()
        except CancelledError:
            raise RuntimeError(f"job {out.number} was cancelled") from None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel what has not ended."""
        for future in list(self._pending):
            future.cancel()


def _shut_down(grid: Submitter) -> None:
    """Shut a grid down in another thread: the garbage collector runs this in any thread."""
    end = Thread(target=grid.shutdown, kwargs={"cancel_futures": True}, name="gridwright joblib")
    try:
        end.start()
    except RuntimeError:  # the interpreter is ending
        grid.shutdown(cancel_futures=True)


register_parallel_backend("gridwright", GridBackend)
