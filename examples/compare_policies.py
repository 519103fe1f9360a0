"""Compare three policies on the same random numbers, with intervals."""

import gridwright as gw

found = gw.compare("2.B", ["met", "mct", "lpas"], horizon=2000, replications=10)
for result in found.results:
    print(f"{result.policy!s:5} {result.written('mean_response')}")
print(*found.statements, *found.conclusions, sep="\n")
