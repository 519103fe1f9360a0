"""Batches: CPU seconds of one trial of Smith's system, 2,000 tasks, the best of several.

Floors: MOC under 0.3 s, MM under 50 ms, whatever is discarded.
"""

from gridwright import System, load, simulate

POLICIES = {"mm": 0.05, "mmu": 0.05, "msd": 0.05, "mect": 0.05, "moc": 0.3, "moc:joint=false": 0.3}


def seconds(system: System, policy: str) -> float:
    """Measure the seconds of the best of several trials, compiling excluded."""
    result = simulate(system, policy, replications=8, threads=1)
    return min(run.seconds for run in result.replications)


def main() -> None:
    print(f"{'':18}{'never':>12}{'batch':>12}{'both':>12}{'floor':>12}")
    for policy, floor in POLICIES.items():
        times = []
        for discard in ("never", "batch", "both"):
            system = load("Smith").replace(deadlines={"factor": 2, "discard": discard})
            times.append(seconds(system, policy))
        row = "".join(f"{1e3 * time:9.1f} ms" for time in (*times, floor))
        print(f"{policy:18}{row}{'' if max(times) < floor else '  too slow'}")
