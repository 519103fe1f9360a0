"""Sending every task to the machine where it finishes first can be unstable."""

import gridwright as gw

system = gw.load("2.H")
print(f"load {100 * gw.allocate(system).load:.1f} %: there is a policy that keeps up")
for policy in ("mct", "lpas"):
    result = gw.simulate(system, policy, horizon=20_000, replications=4)
    print(f"{policy:5} {result.mean_number.mean:7.0f} tasks in the system: {result.verdict}")
