"""Compute the best policy for a small system, and how close others are."""

import gridwright as gw

found = gw.optimum("2.B", policies=["mct", "lpas", "pas"], horizon=2000)
print(f"the best that never interrupts a task: {found.pull.mean_number:.3f} in the system")
for each in found.policies:
    print(f"{each.result.policy!s:5} {each.result.mean_number}, {100 * each.gap:.0f} % more")
