"""Continue after a kill: the journal knows which jobs are done and which are not."""

import tempfile
import time
from pathlib import Path

import gridwright as gw

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "jobs.sqlite"
        grid = gw.Grid("fcfs", machines=1, journal=journal)
        first = grid.submit(abs, -7)
        print("done:", first.result())
        grid.submit(time.sleep, 1)
        grid.submit(abs, -8)
        grid.close()  # stops at once, as if somebody had pulled the plug
        with gw.Grid("fcfs", machines=1, journal=journal) as grid:
            print("still to do:", len(grid.unfinished))
            print("done:", grid.unfinished[2].result())
