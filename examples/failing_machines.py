"""Compare pull policies on machines that fail."""

import gridwright as gw

system = gw.load("3.A:alpha1:5")
down = system.failures
print(f"machines are up for {down.mean_uptime:g} and down for {down.mean_repair:g} time units")
found = gw.compare(system, ["gcmu", "lpas_dg"], horizon=1000, replications=10)
for result in found.results:
    print(f"{result.policy!s:8} {result.mean_response}")
gain = found.improvement("gcmu")["lpas_dg"]
print(f"lpas_dg is {100 * gain:.0f} % better")
