"""``gridwright systems``: list and show the published systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Family, Json, complete_system, listed, option, path_option
from .output import console, counted, finish, percent, show, show_matrix
from .packages import allocation, catalogue, experiments, model

RANDOM = "random"
"""In place of a name: systems are drawn."""


def systems(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A system to show, or 'random'; by default all published ones are listed.",
            autocompletion=complete_system,
        ),
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the system as a system file, which you can edit.")
    ] = False,
    family: Family = None,
    number: Annotated[
        int | None, option("Number of random systems to draw; by default 10.", "NUMBER")
    ] = None,
    seed: Annotated[int | None, option("Seed of the random systems; by default 1.")] = None,
    folder: Annotated[
        Path | None, path_option("Write every random system as a file there.", "FOLDER")
    ] = None,
    json: Json = False,
) -> None:
    """List the published systems, show one of them, or draw random ones."""
    given = {"--family": family, "--number": number, "--seed": seed, "--folder": folder}
    if name == RANDOM:
        if toml:
            raise model.InputError("--toml prints one system; --folder writes those drawn")
        _random(listed(family or ()), number, seed, folder, json=json)
        return
    if wrong := [option for option, value in given.items() if value is not None]:
        raise model.InputError(f"{wrong[0]} is for 'gridwright systems random'")
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


def _random(
    families: list[str], number: int | None, seed: int | None, folder: Path | None, *, json: bool
) -> None:
    """List the families, or draw systems of some of them."""
    if not families:
        if number is not None or seed is not None or folder is not None:
            raise model.InputError("drawing systems needs --family")
        about = {name: family.about for name, family in experiments.FAMILIES.items()}
        words = [{"family": name, "about": text} for name, text in about.items()]
        finish(lambda: words, lambda: show(("family", "systems"), about.items()), json=json)
        return
    if folder is not None and not folder.is_dir():
        raise model.InputError(f"--folder {folder}: there is no such folder")
    wanted, first = 10 if number is None else number, 1 if seed is None else seed
    if wanted < 1 or first < 0:
        raise model.InputError("expected --number of at least 1 and --seed of at least 0")
    drawn = [each for name in families for each in experiments.random_systems(wanted, first, name)]
    rows: list[dict[str, Any]] = []
    for system in drawn:
        classes, machines = system.shape
        load = allocation.allocate(system).load
        row = {"name": system.name, "classes": classes, "machines": machines, "load": load}
        if folder is not None:
            path = folder / f"{system.name.replace(' ', '-').replace(':', '-')}.toml"
            with model.error.file_errors(path, "written"):
                system.to_file(path)
            row["file"] = str(path)
        rows.append(row)
    heads = ("system", ">classes", ">machines", ">load", "file")[: len(rows[0])]
    cells = [[percent(v) if k == "load" else str(v) for k, v in row.items()] for row in rows]
    finish(lambda: rows, lambda: show(heads, cells), json=json)


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
    show_matrix(system, system.nominal, "{:.4g}".format)
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
