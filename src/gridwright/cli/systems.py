"""``gridwright systems``: list and show the published systems."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .options import Json, complete_system
from .output import console, counted, finish, show, show_matrix
from .packages import allocation, catalogue, model


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
    if name is None:
        if toml:
            raise model.InputError("--toml needs the name of a system")
        everything = catalogue.entries()
        rows = [_summary(entry) for entry in everything]
        finish(lambda: rows, lambda: _list(everything), json=json)
        return
    if toml and json:
        raise model.InputError("--toml and --json exclude each other; choose one")
    entry = catalogue.find(name)
    if toml:
        if entry.down:
            print(f"# in this example down: allocate it with --down {','.join(entry.down)}")
        print(entry.system.to_toml(), end="")
    else:
        finish(lambda: _details(entry), lambda: _show(entry), json=json)


def _summary(entry: catalogue.Entry) -> dict[str, Any]:
    shape = entry.shape or (None, None)
    size = {"classes": shape[0], "machines": shape[1]}
    return {"name": entry.name, **size, "source": entry.source, "where": entry.where}


def _details(entry: catalogue.Entry) -> dict[str, Any]:
    return {
        **_summary(entry),
        "citation": catalogue.cite(entry.source),
        "note": entry.note,
        "horizon": entry.horizon,
        "down": entry.down,
        "expected_capacity": entry.expected_capacity,
        "expected_allocation": entry.expected_allocation,
        "system": model.file.document(entry.system) if entry.parts else None,
        "printed": entry.printed,
        "results": catalogue.results_of(entry.name),
    }


def _list(everything: list[catalogue.Entry]) -> None:
    out = console()
    rows = (
        (entry.name, *map(str, entry.shape or ("", "")), f"{entry.source}: {entry.where}")
        for entry in everything
    )
    show(("system", ">classes", ">machines", "published in"), rows)
    out.print("")
    for source in dict.fromkeys(entry.source for entry in everything):
        out.print(f"{source}: {catalogue.cite(source)}", markup=False)
    out.print("\n'gridwright systems NAME' shows one, 'gridwright allocate NAME' solves it.")


def _show(entry: catalogue.Entry) -> None:
    out = console()
    out.print(f"[bold]{entry.name}[/bold]: {entry.where}")
    out.print(catalogue.cite(entry.source))
    if entry.note:
        out.print(f"Note: {entry.note}.", markup=False)
    if entry.parts:
        _show_system(entry)
    if entry.printed:
        out.print("\nAlso printed:")
        for key, value in entry.printed.items():
            out.print(f"  {key} = {value}", markup=False)
    cells = catalogue.results_of(entry.name)
    if cells:
        places = ", ".join(dict.fromkeys(f"{cell['src']}:{cell['table']}" for cell in cells))
        out.print(f"\nPrinted results: {len(cells)} cells in {places} (--json lists them).")
    if entry.parts:
        simulated = f"simulate {entry.name} --policy chain_mct"
        drawn = entry.system.random_templates is not None
        out.print(f"\nNext: gridwright {simulated if drawn else f'allocate {entry.name}'}")


def _show_random_templates(entry: catalogue.Entry) -> None:
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


def _show_system(entry: catalogue.Entry) -> None:
    out, system = console(), entry.system
    if system.random_templates is not None:
        _show_random_templates(entry)
        return
    measured = model.heterogeneity(system)
    out.print(
        f"\n{counted(system.shape[0], 'class', 'classes')}, "
        f"{counted(system.shape[1], 'machine')}, {measured.name} "
        f"(task heterogeneity {measured.task:.2f}, machine heterogeneity {measured.machine:.2f}, "
        f"{'consistent' if measured.consistent else 'inconsistent'}); execution rates:\n"
    )
    show_matrix(system, system.nominal, ".4g")
    shares = sorted(set(system.mean_availability.round(4)))
    if shares != [1]:
        out.print(f"\nMean CPU availability of the machines: {', '.join(f'{a:g}' for a in shares)}")
    if system.failures:
        up = allocation.allocation.span(100 * system.up_fraction)
        out.print(f"\nMachines fail: up {up} % of the time")
    if entry.down:
        out.print(f"\nDown: {', '.join(entry.down)}")
    if entry.horizon:
        out.print(f"\nPublished length of a run: {entry.horizon:g} time units")
    if entry.expected_capacity:
        out.print(f"\nPrinted capacity λ*: {entry.expected_capacity}")
