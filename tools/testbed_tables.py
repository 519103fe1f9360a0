"""Write the tables of ``docs/testbed.md`` from the runs of the twelve experiments that are there.

    python tools/testbed_tables.py

Of every experiment and policy the last run that was done counts. ``GRIDWRIGHT_HOME`` says where.
"""

from collections.abc import Iterator
from typing import Any

from gridwright.testbed import Report, Run, report, runs

POLICIES = {"lpas_dg": "LPAS_DG", "gcmu": "Gcμ", "fcfs": "FCFS"}
HEADS = (
    "",
    "policy",
    "run",
    "twin",
    "gap",
    "range of twins",
    "long run",
    "a run of this length",
    "published testbed",
    "published simulation",
    "unfinished",
)


def last_runs() -> dict[tuple[int, str], Report]:
    """Find the runs, and set each beside its twin and what is to be expected."""
    found = {}
    for path in runs():
        with Run(path) as run:
            name, _, number = run.experiment.name.partition("-")
            policy = run.about["policy"].partition(":")[0]
            if name == "MGST" and run.state == "done" and policy in POLICIES:
                found[int(number), policy] = report(run)
    return found


def row(number: int, policy: str, found: Report) -> list[str]:
    """Return the cells of a run."""
    jobs, gap, expected = found.statistics.overall, found.gap, found.expected
    assert expected is not None
    printed = found.published.get("overall", {})
    return [
        str(number),
        POLICIES[policy],
        f"**{jobs.response:.3f}**",
        f"{found.twin.overall.response:.3f}",
        f"{100 * gap.relative:+.1f} %",
        f"{gap.low:.3f} to {gap.high:.3f}",
        f"{expected.long_run:.3f}" if expected.settles else "grows",
        f"{expected.low:.2f} to {expected.high:.2f}",
        printed.get("testbed", ""),
        printed.get("simulation", ""),
        f"{jobs.unfinished} of {jobs.arrived}",
    ]


def rates(found: Report) -> Iterator[list[str]]:
    """Yield a row for every class: actual of desired rates."""
    system = found.run.system
    for i, name in enumerate(system.classes):
        pairs = zip(found.rates[i], system.effective[i], strict=True)
        yield [name, *("" if is_ != is_ else f"{is_:.2f} of {should:g}" for is_, should in pairs)]


def show(heads: Any, rows: Any) -> None:
    """Print a table."""
    print(f"| {' | '.join(heads)} |".replace("|  |", "| |"))
    print("|" + "---|" * len(heads))
    for cells in rows:
        print(f"| {' | '.join(cells)} |")
    print()


def main() -> None:
    """Print everything."""
    found = last_runs()
    for numbers in (range(1, 5), range(5, 13)):
        keys = [(e, p) for e in numbers for p in POLICIES if (e, p) in found]
        show(HEADS, [row(*key, found[key]) for key in keys])
    for policy in ("lpas_dg", "gcmu"):
        if (2, policy) in found:
            machines = [f"M{j + 1}" for j in range(found[2, policy].run.system.shape[1])]
            show(["class", *machines], list(rates(found[2, policy])))


if __name__ == "__main__":
    main()
