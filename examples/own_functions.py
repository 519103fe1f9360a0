"""Run your own functions on real processes, placed by a policy."""

from math import factorial

import gridwright as gw


def digits(n):
    """Count the digits of a factorial."""
    return len(str(factorial(n)))


if __name__ == "__main__":
    with gw.Grid("pas_dg", machines=2, journal=":memory:") as grid:
        small = grid.options(task_class="small").submit_all(digits, range(10))
        large = grid.options(task_class="large").submit_all(digits, [1000, 1500])
        print([each.result() for each in small])
        print([each.result() for each in large])
        figures = grid.statistics()
        print({name: each.finished for name, each in figures.classes.items()})
