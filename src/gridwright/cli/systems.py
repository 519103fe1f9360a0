"""``gridwright systems``: list and show the published systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Json, complete_system
from .output import console, counted, matrix, print_json, show, table

if TYPE_CHECKING:
    from ..catalogue import Entry


def systems(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A system to show; by default all are listed.", autocompletion=complete_system
        ),
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the system as a system file, which you can edit.")
    ] = False,
    json: Json = False,
) -> None:
    """List the published systems, or show one of them."""
    from ..catalogue import entries, find
    from ..model import InputError

    if name is None:
        if toml:
            raise InputError("--toml needs the name of a system")
        everything = entries()
        print_json([_summary(entry) for entry in everything]) if json else _list(everything)
        return
    if toml and json:
        raise InputError("--toml and --json exclude each other; choose one")
    entry = find(name)
    if toml:
        if entry.down:
            print(f"# in this example down: allocate it with --down {','.join(entry.down)}")
        print(entry.system.to_toml(), end="")
    elif json:
        print_json(_details(entry))
    else:
        _show(entry)


def _summary(entry: Entry) -> dict[str, Any]:
    shape = entry.shape or (None, None)
    return {
        "name": entry.name,
        "classes": shape[0],
        "machines": shape[1],
        "source": entry.source,
        "where": entry.where,
    }


def _details(entry: Entry) -> dict[str, Any]:
    from ..catalogue import cite, results_of
    from ..model.file import document

    return {
        **_summary(entry),
        "citation": cite(entry.source),
        "note": entry.note,
        "horizon": entry.horizon,
        "down": entry.down,
        "expected_capacity": entry.expected_capacity,
        "expected_allocation": entry.expected_allocation,
        "system": document(entry.system) if entry.parts else None,
        "printed": entry.printed,
        "results": results_of(entry.name),
    }


def _list(everything: list[Entry]) -> None:
    from ..catalogue import cite

    out = console()
    rows = table("system", ">classes", ">machines", "published in")
    for entry in everything:
        shape = map(str, entry.shape or ("", ""))
        rows.add_row(entry.name, *shape, f"{entry.source}: {entry.where}")
    show(out, rows)
    out.print("")
    for source in dict.fromkeys(entry.source for entry in everything):
        out.print(f"{source}: {cite(source)}", markup=False)
    out.print("\n'gridwright systems NAME' shows one, 'gridwright allocate NAME' solves it.")


def _show(entry: Entry) -> None:
    from ..catalogue import cite, results_of

    out = console()
    out.print(f"[bold]{entry.name}[/bold]: {entry.where}")
    out.print(cite(entry.source))
    if entry.note:
        out.print(f"Note: {entry.note}.", markup=False)
    if entry.parts:
        _show_system(entry)
    if entry.printed:
        out.print("\nAlso printed:")
        for key, value in entry.printed.items():
            out.print(f"  {key} = {value}", markup=False)
    cells = results_of(entry.name)
    if cells:
        places = ", ".join(dict.fromkeys(f"{cell['src']}:{cell['table']}" for cell in cells))
        out.print(f"\nPrinted results: {len(cells)} cells in {places} (--json lists them).")
    if entry.parts:
        simulated = f"simulate {entry.name} --policy chain_mct"
        drawn = entry.system.random_templates is not None
        out.print(f"\nNext: gridwright {simulated if drawn else f'allocate {entry.name}'}")


def _show_random_templates(entry: Entry) -> None:
    out, drawn = console(), entry.system.random_templates
    assert drawn is not None
    out.print(
        f"\n{counted(entry.system.shape[1], 'node')}; {counted(drawn.count, 'template')} "
        "of chains of applications, drawn anew for every replication:\n"
    )
    for key, value in drawn.parts().items():
        out.print(f"  {key} = {value}", markup=False)
    if entry.horizon:
        out.print(f"\nLength of a run: {entry.horizon:g} ticks")


def _show_system(entry: Entry) -> None:
    from ..allocation.allocation import span
    from ..model import heterogeneity

    out, system = console(), entry.system
    if system.random_templates is not None:
        _show_random_templates(entry)
        return
    measured = heterogeneity(system)
    out.print(
        f"\n{counted(system.shape[0], 'class', 'classes')}, "
        f"{counted(system.shape[1], 'machine')}, {measured.name} "
        f"(task heterogeneity {measured.task:.2f}, machine heterogeneity {measured.machine:.2f}, "
        f"{'consistent' if measured.consistent else 'inconsistent'}); execution rates:\n"
    )
    show(out, matrix(system, system.nominal, ".4g"))
    shares = sorted(set(system.mean_availability.round(4)))
    if shares != [1]:
        out.print(f"\nMean CPU availability of the machines: {', '.join(f'{a:g}' for a in shares)}")
    if system.failures:
        out.print(f"\nMachines fail: up {span(100 * system.up_fraction)} % of the time")
    if entry.down:
        out.print(f"\nDown: {', '.join(entry.down)}")
    if entry.horizon:
        out.print(f"\nPublished length of a run: {entry.horizon:g} time units")
    if entry.expected_capacity:
        out.print(f"\nPrinted capacity λ*: {entry.expected_capacity}")
