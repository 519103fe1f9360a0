"""Draw the pictures of the pages under ``docs/learn`` from what the package computes.

    python tools/draw_docs.py [NAME]... [--to docs/figures]

Each picture has a function here with its name. All but ``real`` come out the same every time:
that one is measured on real processes.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import gridwright as gw
from gridwright.plots.figure import save
from gridwright.policies import find
from gridwright.simulation import KINDS, replicate
from gridwright.testbed import Experiment, conduct, twin

ROOT = Path(__file__).parents[1]
START, FINISH = KINDS.index("start"), KINDS.index("finish")
COLOURS = ("#4063d8", "#cb3c33", "#389826", "#9558b2", "#c98a00")


def panels(count: int = 1, height: float = 2.8) -> tuple[Figure, list[Axes]]:
    """Make a figure with some panels side by side."""
    figure = Figure(figsize=(7.2, height), layout="constrained")
    axes = [figure.add_subplot(1, count, k + 1) for k in range(count)]
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    return figure, axes


def allocation() -> Figure:
    """Draw which arrival rates the two machines of System 2.B can keep up with."""
    system = gw.load("2.B")
    figure, (panel,) = panels(height=3.4)
    corners = []
    for angle in np.linspace(0, np.pi / 2, 181):
        arrivals = np.array([np.cos(angle), np.sin(angle)]) + 1e-9
        corners.append(arrivals * gw.allocate(system.replace(arrivals=arrivals)).capacity)
    x, y = np.array(corners).T
    panel.fill_between(x, y, color=COLOURS[0], alpha=0.15)
    panel.plot(x, y, color=COLOURS[0], label="the most that an allocation can do")
    panel.plot([8, 8, 0], [0, 10, 10], "--", color="#777777", label="class 1 on 1, class 2 on 2")
    best = gw.allocate(system)
    (a, b), most = system.arrivals, best.capacity
    panel.annotate(
        "", (a * most, b * most), (a, b), arrowprops={"arrowstyle": "->", "color": COLOURS[1]}
    )
    panel.plot([a], [b], "o", color=COLOURS[1])
    panel.text(a + 0.25, b - 0.6, f"arrivals; they could grow by {100 * (most - 1):.0f} %")
    panel.set(xlabel="class 1, tasks per time unit", ylabel="class 2", xlim=(0, 13), ylim=(0, 15))
    panel.legend(frameon=False, loc="upper right")
    return figure


def instability() -> Figure:
    """Draw the number in system under MCT and LPAS, with the same arrivals."""
    figure, (panel,) = panels()
    for policy, colour in (("mct", COLOURS[1]), ("lpas", COLOURS[0])):
        result = gw.simulate("2.Sharifnia", policy, horizon=500, replications=4)
        for k, run in enumerate(result.replications):
            label = policy if k == 0 else None
            panel.plot(run.times, run.number, color=colour, lw=1, label=label)
    panel.set(xlabel="time", ylabel="tasks in the system")
    panel.legend(frameon=False)
    return figure


def zeros() -> Figure:
    """Draw what the machines of System 2.B do with their time under MCT and LPAS."""
    figure, (panel,) = panels(height=2.2)
    rows = [("lpas", 1), ("mct", 1), ("lpas", 0), ("mct", 0)]
    for row, (policy, machine) in enumerate(rows):
        left = 0.0
        for task_class, share in enumerate(_time_by_class(policy)[:, machine]):
            label = f"class {task_class + 1}" if row == 0 else None
            panel.barh(row, share, left=left, color=COLOURS[task_class], label=label)
            if share > 0:
                panel.text(left + share / 2, row, f"{100 * share:.0f} %", **_WHITE)
            left += share
    panel.set(yticks=range(4), xlim=(0, 1), xlabel="share of the machine's time")
    panel.set_yticklabels([f"machine {machine + 1}, {policy}" for policy, machine in rows])
    panel.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


_WHITE: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "size": 8}


def _time_by_class(policy: str) -> Any:
    horizon = 2000
    result = gw.simulate("2.B", policy, horizon=horizon, replications=1, trace=True)
    trace = result.replications[0].trace
    begun: dict[int, float] = {}
    taken = np.zeros(result.system.shape)
    for event in trace[np.argsort(trace["time"], kind="stable")]:
        if event.kind == START:
            begun[int(event.task)] = event.time
        elif event.kind == FINISH:
            taken[event.task_class, event.machine] += event.time - begun.pop(int(event.task))
    return taken / horizon


def push_pull() -> Figure:
    """Draw the mean response of push and pull policies as the load of System 2.B grows."""
    figure, (panel,) = panels()
    policies = ["mct", "lpas", "gcmu", "lpas_dg"]
    loads = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    found = gw.sweep("2.B", policies, "load", loads, horizon=2000)
    for k, policy in enumerate(policies):
        results = [point.results[k] for point in found.points]
        means = [each.mean_response.mean if each.stable else np.nan for each in results]
        kind = find(policy).kind
        line = "--" if kind.pulls else "-"
        panel.plot(
            loads, means, line, marker="o", ms=4, color=COLOURS[k], label=f"{policy} ({kind})"
        )
    panel.set(xlabel="load", ylabel="mean response time", yscale="log")
    panel.legend(frameon=False)
    return figure


def failures() -> Figure:
    """Draw the load and the mean response as the machines of System 2.B are up more seldom."""
    figure, axes = panels(2)
    system, repair = gw.load("2.B"), 2.0
    shares = np.array([0.8, 0.83, 0.86, 0.89, 0.92, 0.95, 0.98])
    loads, means, lows, highs = [], [], [], []
    for share in shares:
        failing = {"mean_uptime": repair * share / (1 - share), "mean_repair": repair}
        changed = system.replace(failures=failing)
        loads.append(1 / gw.allocate(changed).long_run_capacity)
        found = gw.simulate(changed, "lpas_dg", horizon=5000).mean_response
        means.append(found.mean)
        lows.append(found.low)
        highs.append(found.high)
    axes[0].plot(100 * shares, 100 * np.array(loads), marker="o", ms=4, color=COLOURS[0])
    axes[0].set(xlabel="machines up, % of the time", ylabel="load in the long run, %")
    axes[1].plot(100 * shares, means, marker="o", ms=4, color=COLOURS[1])
    axes[1].fill_between(100 * shares, lows, highs, color=COLOURS[1], alpha=0.2)
    axes[1].set(
        xlabel="machines up, % of the time", ylabel="mean response, lpas_dg", ylim=(0, None)
    )
    return figure


def stale_views() -> Figure:
    """Draw what asking fewer machines saves, and how old views then are, on System 4.A."""
    figure, axes = panels(2)
    policies = ["mct_dec", "kpb_dec:k=2", "kpb_dec:k=3", "kpb_dec:k=4", "lpas_dec"]
    for k, policy in enumerate(policies):
        result = gw.simulate("4.A", policy, horizon=2000)
        messages = result.figure("like_for_like").mean
        for panel, figure_name in zip(axes, ("view_age", "mean_response"), strict=True):
            panel.plot([messages], [result.figure(figure_name).mean], "o", color=COLOURS[k])
        axes[1].plot([], [], "o", color=COLOURS[k], label=policy)
    axes[0].set(xlabel="messages per task", ylabel="age of a view", xlim=(0, None), ylim=(0, None))
    axes[1].set(xlabel="messages per task", ylabel="mean response", xlim=(0, None))
    axes[1].legend(frameon=False, fontsize=8)
    return figure


def deadlines() -> Figure:
    """Draw the pmf of one task and of two in a row, and a deadline."""
    figure, axes = panels(2)
    one = gw.GridPmf.of(gw.Gamma(shape=4), mean=10, width=1)
    deadline = 20
    for panel, pmf, name in (
        (axes[0], one, "first in the queue"),
        (axes[1], one.convolve(one), "second in the queue"),
    ):
        late = pmf.values > deadline
        panel.bar(pmf.values[~late], pmf.mass[~late], color=COLOURS[2])
        panel.bar(pmf.values[late], pmf.mass[late], color=COLOURS[1])
        panel.axvline(deadline + 0.5, color="#333333", lw=1, ls=":")
        panel.set(xlim=(0, 50), xlabel="done after", yticks=[])
        panel.set_title(f"{name}: on time with {100 * pmf.by(deadline):.0f} %", size=10)
    axes[0].set_ylabel("probability")
    return figure


def chains() -> Figure:
    """Draw where the applications of a few jobs run under two policies."""
    figure, axes = panels(2, height=2.4)
    for panel, policy in zip(axes, ("chain_fcfs", "chain_mct"), strict=True):
        run = replicate(
            CHAINS,
            find(policy),
            horizon=60,
            seed=np.random.SeedSequence(3),
            interpreted=True,
            trace=True,
        )
        begun: dict[int, float] = {}
        for event in run.trace:
            job = int(event.task)
            if event.kind == START:
                begun[job] = event.time
            elif event.kind == FINISH and job in begun:
                at = begun.pop(job)
                panel.barh(
                    event.machine,
                    event.time - at,
                    left=at,
                    color=COLOURS[job % len(COLOURS)],
                    edgecolor="white",
                )
                panel.text((at + event.time) / 2, event.machine, str(job + 1), **_WHITE)
        panel.set(yticks=range(3), yticklabels=CHAINS.machines, xlabel="tick", xlim=(0, 60))
        panel.set_title(policy, size=10)
        panel.invert_yaxis()
    return figure


CHAINS = gw.System(
    name="three nodes",
    groups=["a", "b", "c"],
    counts=[1, 1, 1],
    templates=[
        {"name": "film", "rate": 0.12, "latency": 40, "times": [[4, 8, 9], [9, 3, 8], [8, 8, 4]]}
    ],
)


def real() -> Figure:
    """Draw the mean response of every class of a run on real processes, and of its twin."""
    figure, (panel,) = panels(height=2.4)
    experiment = Experiment(
        system="MGST.HiHi:1", policy="lpas_dg", time_unit=1.0, duration=40, corrections=False
    )
    with TemporaryDirectory() as folder, conduct(experiment, path=Path(folder) / "run") as run:
        sides = {"real processes": run.statistics(), "simulated twin": twin(run)}
    for k, (name, found) in enumerate(sides.items()):
        means = [found.overall, *found.classes.values()]
        places = np.arange(len(means)) + 0.4 * k - 0.2
        panel.bar(places, [each.response for each in means], 0.38, color=COLOURS[k], label=name)
    panel.set_xticks(range(len(means)), ["all jobs", *(f"class {name}" for name in found.classes)])
    panel.set(ylabel="mean response time")
    panel.legend(frameon=False)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "allocation": allocation,
    "instability": instability,
    "zeros": zeros,
    "push-pull": push_pull,
    "failures": failures,
    "stale-views": stale_views,
    "deadlines": deadlines,
    "chains": chains,
    "real": real,
}


def main() -> None:
    """Draw the pictures that are named, or all."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PICTURES))
    words.add_argument("--to", type=Path, default=ROOT / "docs" / "figures")
    given = words.parse_args()
    mpl.rcParams["svg.fonttype"] = "none"
    for name in given.names or PICTURES:
        path = given.to / f"learn-{name}.svg"
        save(PICTURES[name](), path)
        print(path)


if __name__ == "__main__":
    main()
