"""Write a policy in a few lines: it asks two machines and takes the shorter queue."""

import gridwright as gw


@gw.push
def the_two_fastest(task_class, view):
    """Ask the two machines that are fastest for the class."""
    first, second = 0, 1
    if view.rate[task_class, second] > view.rate[task_class, first]:
        first, second = second, first
    for j in range(2, len(view.machines)):
        if view.rate[task_class, j] > view.rate[task_class, first]:
            first, second = j, first
        elif view.rate[task_class, j] > view.rate[task_class, second]:
            second = j
    if view.machines[second].work < view.machines[first].work:
        return second
    return first


found = gw.compare("2.D", ["mct", the_two_fastest], horizon=2000, replications=10)
for result in found.results:
    print(f"{result.policy!s:15} {result.mean_response}")
