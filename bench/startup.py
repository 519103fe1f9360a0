"""Start-up: importing the package and ``--help``, against a bare Python in the same run.

Floor: both under 0.5 s (goal: 0.35 s).
"""

import subprocess
import sys

from .measure import best_time


def main() -> None:
    commands = {
        "python -c pass": ["-c", "pass"],
        "import gridwright": ["-c", "import gridwright"],
        "gridwright --help": ["-m", "gridwright", "--help"],
        "gridwright allocate 2.B": ["-m", "gridwright", "allocate", "2.B"],
    }
    bare = None
    for name, arguments in commands.items():
        command = [sys.executable, *arguments]
        time = best_time(lambda: subprocess.run(command, check=True, capture_output=True))  # noqa: B023
        bare = bare or time
        print(f"{name:26}{time:7.3f} s{time / bare:7.1f} × bare Python")
