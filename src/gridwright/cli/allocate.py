"""``gridwright allocate``: capacity, load, and which machine serves which class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape

from .options import Json, Prices, SystemName, listed, option, path_option, prices_of
from .output import UNKNOWN, check_files, console, counted, finish, percent, show, show_matrix
from .packages import allocation, catalogue, model, plots, statistics


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
    add: Annotated[
        bool,
        option("Also print what one more machine of each group would be worth.", None, "--add"),
    ] = False,
    prices: Prices = None,
    plot: Annotated[Path | None, path_option("Draw the allocation as a heat map.")] = None,
    json: Json = False,
) -> None:
    """Solve the allocation LP: capacity, load, and which machine serves which class."""
    check_files(plot=plot)
    entry = catalogue.find_or_read(system)
    failed = listed(down or ())
    found = allocation.allocate(entry.system, method, down=[*entry.down, *failed])
    before = allocation.allocate(entry.system, method, down=entry.down) if failed else None
    if prices is not None and not add:
        raise model.InputError("--prices needs --add")
    added = allocation.one_more(found, prices_of(prices)) if add else []

    def words() -> dict[str, Any]:
        return found.as_json() | ({"add": [each.as_json() for each in added]} if add else {})

    def show_all() -> None:
        show_allocation(found, before)
        if add:
            _show_added(added, priced=prices is not None)

    files = {plot: lambda path: plots.draw_allocation(found, path)}
    finish(words, show_all, json=json, files=files)


def _show_added(added: list[allocation.Addition], *, priced: bool) -> None:
    print("\nThe long-run load with one more machine:\n")
    heads = (">load", ">lower by") + ((">price", ">price of 1 point") if priced else ())
    rows = []
    for each in sorted(added, key=lambda each: each.price_per_point):
        cells = [each.group, percent(each.load), f"{100 * each.relief:.1f} points"]
        if priced:
            per_point = each.price_per_point
            cells += [
                f"{each.price:g}",
                f"{per_point:.4g}" if per_point < float("inf") else UNKNOWN,
            ]
        rows.append(cells)
    show(("group", *heads), rows)


def show_allocation(
    found: allocation.Allocation, before: allocation.Allocation | None = None
) -> None:
    """Print an allocation as a table, and what it means."""
    out, system = console(), found.system
    classes, machines = system.shape
    size = f"{counted(classes, 'class', 'classes')}, {counted(machines, 'machine')}"
    out.print(f"[bold]{escape(system.name)}[/bold]: {size}")
    out.print(
        f"capacity λ* [bold]{found.capacity:.4f}[/bold], "
        f"load [bold]{100 * found.load:.2f} %[/bold] ({found.method})\n"
    )
    show_matrix(system, found.shares, lambda share: statistics.share_text(share, 4))
    words = [found.verdict.words]
    if found.capacity > 0:
        out.print("\nEfficiency: the share of a machine's worth that a class earns there\n")
        show_matrix(system, found.efficiencies, lambda share: statistics.share_text(share, 3))
        out.print("\n" + _prices(found), markup=False)
        words += [_bottleneck(found), _one_more(found), _information(found)]
        words += [_change(before, found)] if before else []
    out.print("", *words, sep="\n", markup=False)


def _bottleneck(found: allocation.Allocation) -> str:
    classes, machines = found.bottleneck_classes, found.bottleneck_machines
    every = len(machines) == len(found.system.machines) - len(found.down)
    named = "every machine" if every else _list(machines, "machine", "machines")
    return f"The capacity is limited by {_list(classes, 'class', 'classes')} and {named}."


def _prices(found: allocation.Allocation) -> str:
    """Say what a task of each class is worth, relative to the cheapest."""
    prices = found.class_prices
    least = prices[prices > 0].min()
    names = found.system.classes
    return "Worth of a task: " + ", ".join(
        f"class {name}: {price / least:.3g}" for name, price in zip(names, prices, strict=True)
    )


def _one_more(found: allocation.Allocation) -> str:
    """Say how much one more machine of each kind adds to the capacity."""
    machines = found.system.machines
    gains = {machines[j]: 100 * found.gain(j) for j in found.kinds}
    added = ", ".join(
        f"{gain:.1f} % if like {name}" for name, gain in gains.items() if gain == gain
    )
    words = [f"One more machine would add to the capacity: {added}."] if added else []
    if needed := [name for name, gain in gains.items() if gain != gain]:
        words.append(f"One like {' or '.join(needed)} would run what is left out.")
    return " ".join(words)


def _list(names: tuple[str, ...], one: str, many: str) -> str:
    if len(names) > 12:
        return f"{len(names)} {many}"
    return f"{one if len(names) == 1 else many} {', '.join(names)}"


def _information(found: allocation.Allocation) -> str:
    asked = [
        f"{name} {found.information(limit):.2f} ({100 * found.discount(limit):.1f} % saved)"
        for name, limit in (("LPAS", None), ("LPAS-2/k", 2))
    ]
    return f"Machines asked per arrival, of {len(found.system.machines)}: {', '.join(asked)}."


def _change(before: allocation.Allocation, after: allocation.Allocation) -> str:
    change = before.change(after)
    per_cent = 100 * (change.after / change.before - 1)
    names = [after.system.machines[j] for j in after.down]
    down = ", ".join(names) if len(names) <= 6 else f"{len(names)} machines"
    pairs = ", ".join(f"class {i} on {j}" for i, j in change.gained[:6])
    more = f" and {len(change.gained) - 6} more" if len(change.gained) > 6 else ""
    used = f"Newly used: {pairs}{more}." if pairs else "No pair is newly used."
    if change.left_out:
        return (
            f"With {down} down the capacity of the classes that can run is {change.after:.4f}; "
            f"otherwise that of all classes is {change.before:.4f}. {used}"
        )
    return (
        f"With {down} down the capacity goes from {change.before:.4f} to "
        f"{change.after:.4f} ({per_cent:+.1f} %). {used}"
    )
