"""``gridwright allocate``: capacity, load, and which machine serves which class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape

from .options import Json, SystemName, listed, option, path_option
from .output import check_files, console, counted, finish, matrix, show

if TYPE_CHECKING:
    from ..allocation import Allocation


def allocate(
    system: SystemName,
    method: Annotated[
        str,
        option(
            "How to solve the LP: grouped, vertex or interior; see the command reference.", "METHOD"
        ),
    ] = "grouped",
    down: Annotated[
        list[str] | None,
        option(
            "Machines that are down: names, groups or numbers, separated by commas.", "MACHINE,…"
        ),
    ] = None,
    plot: Annotated[Path | None, path_option("Draw the allocation as a heat map.")] = None,
    json: Json = False,
) -> None:
    """Solve the allocation LP: capacity, load, and which machine serves which class."""
    from ..allocation import allocate as solve
    from ..catalogue import find_or_read
    from ..plots import draw_allocation

    check_files(plot=plot)
    entry = find_or_read(system)
    failed = listed(down or ())
    allocation = solve(entry.system, method, down=[*entry.down, *failed])
    before = solve(entry.system, method, down=entry.down) if failed else None
    finish(
        allocation.as_json,
        lambda: show_allocation(allocation, before),
        json=json,
        files={plot: lambda path: draw_allocation(allocation, path)},
    )


def show_allocation(allocation: Allocation, before: Allocation | None = None) -> None:
    """Print an allocation as a table, and what it means."""
    out = console()
    system = allocation.system
    classes, machines = system.shape
    size = f"{counted(classes, 'class', 'classes')}, {counted(machines, 'machine')}"
    out.print(f"[bold]{escape(system.name)}[/bold]: {size}")
    out.print(
        f"capacity λ* [bold]{allocation.capacity:.4f}[/bold], "
        f"load [bold]{100 * allocation.load:.2f} %[/bold] ({allocation.method})\n"
    )
    show(out, matrix(system, allocation.shares, ".4f"))
    words = [allocation.verdict.words]
    if allocation.capacity > 0:
        out.print("\nEfficiency: the share of a machine's worth that a class earns there\n")
        show(out, matrix(system, allocation.efficiencies, ".3f"))
        out.print("\n" + _prices(allocation), markup=False)
        words += [_bottleneck(allocation), _one_more(allocation), _information(allocation)]
    if before and allocation.capacity > 0:
        words.append(_change(before, allocation))
    out.print("", *words, sep="\n", markup=False)


def _bottleneck(allocation: Allocation) -> str:
    classes, machines = allocation.bottleneck_classes, allocation.bottleneck_machines
    every = len(machines) == len(allocation.system.machines) - len(allocation.down)
    named = "every machine" if every else _list(machines, "machine", "machines")
    return f"The capacity is limited by {_list(classes, 'class', 'classes')} and {named}."


def _prices(allocation: Allocation) -> str:
    """Say what a task of each class is worth, relative to the cheapest."""
    prices = allocation.class_prices
    least = prices[prices > 0].min()
    names = allocation.system.classes
    return "Worth of a task: " + ", ".join(
        f"class {name}: {price / least:.3g}" for name, price in zip(names, prices, strict=True)
    )


def _one_more(allocation: Allocation) -> str:
    """Say how much one more machine of each kind adds to the capacity."""
    machines = allocation.system.machines
    kinds = [(machines[j], 100 * allocation.gain(j)) for j in allocation.kinds]
    added = ", ".join(f"{gain:.1f} % if like {name}" for name, gain in kinds)
    return f"One more machine would add to the capacity: {added}."


def _list(names: tuple[str, ...], one: str, many: str) -> str:
    if len(names) > 12:
        return f"{len(names)} {many}"
    return f"{one if len(names) == 1 else many} {', '.join(names)}"


def _information(allocation: Allocation) -> str:
    asked = [
        f"{name} {allocation.information(limit):.2f} "
        f"({100 * allocation.discount(limit):.1f} % saved)"
        for name, limit in (("LPAS", None), ("LPAS-2/k", 2))
    ]
    return f"Machines asked per arrival, of {len(allocation.system.machines)}: {', '.join(asked)}."


def _change(before: Allocation, after: Allocation) -> str:
    found = before.change(after)
    per_cent = 100 * (found.after / found.before - 1)
    names = [after.system.machines[j] for j in after.down]
    down = ", ".join(names) if len(names) <= 6 else f"{len(names)} machines"
    pairs = ", ".join(f"class {i} on {j}" for i, j in found.gained[:6])
    more = f" and {len(found.gained) - 6} more" if len(found.gained) > 6 else ""
    used = f"Newly used: {pairs}{more}." if pairs else "No pair is newly used."
    return (
        f"With {down} down the capacity goes from {found.before:.4f} to "
        f"{found.after:.4f} ({per_cent:+.1f} %). {used}"
    )
