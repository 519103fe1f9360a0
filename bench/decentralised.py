"""Decentralised grids: arrivals per CPU second with every machine's own LP included.

Floor: 4.A under LPAS_dec at 1.5 million arrivals a second on one core; the ratio is against the
same machines under the central LPAS, where nothing changes and nobody sends messages. The last row
is of queues that grow to tens of thousands of tasks, under estimates that may be off by 100 %.
"""

from gridwright import System, load, simulate

from .baseline import Run, best_of


def ours(system: str | System, policy: str) -> Run:
    """Measure simulated arrivals per CPU second on one thread."""

    def run() -> float:
        result = simulate(system, policy, 20_000.0, 1, threads=1)
        return result.tasks / result.seconds

    run()  # compiles
    return run


def main() -> None:
    doubtful = load("4.A").replace(assumed={"inaccuracy": {"arrivals": 1, "rates": 1}})
    best = best_of(
        4,
        central=ours("2.D", "lpas"),
        **{policy: ours("4.A", policy) for policy in ("mct_dec", "kpb_dec", "lpas_dec")},
        growing=ours(doubtful, "kpb_dec"),
    )
    print(f"{'':10}{'arrivals/s':>12}{'/ central':>12}")
    for name, speed in best.items():
        print(f"{name:10}{speed / 1e6:10.2f} M{speed / best['central']:12.2f}")
