"""Compute the probability of being on time, with pmfs of execution times."""

from gridwright import GridPmf, robustness

run = GridPmf(width=5, mass=[0, 0.2, 0.5, 0.3])
print(
    f"a task takes {run.mean:g} on average; two of them are done by 20 with chance "
    f"{run.convolve(run).by(20):.2f}"
)
running = run.shift(100).after(106)
print(f"begun at 100, not done at 106: done by 110 with chance {running.by(110):.3f}")
found = robustness([(running, 112), (run, 125)], [(run.shift(106), 120)])
print(f"robustness of the two queues {found.rho:.4f}, {found.expected:.4f} of 3 tasks in time")
