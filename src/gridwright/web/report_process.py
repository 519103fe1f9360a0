"""Make the report on a run in a process of its own: ``python -m gridwright.web.report_process 3``.

The report is printed as JSON. Until then, every line of the standard error is the share that is
done; a last line that is not a number says what is wrong.
"""

import json
import sys

from ..model import GridwrightError
from ..testbed import Run, report
from .documents import plain


def main(number: str) -> int:
    """Print the report on a run; return the exit status."""

    def tell(done: float) -> None:
        print(f"{done:.3f}", file=sys.stderr, flush=True)

    try:
        with Run.find(number) as run:
            found = report(run, expected=False, progress=tell).as_json()
    except GridwrightError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(plain(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
