"""The machines of a run as tiles, and the buttons that operate those that are selected."""

import json
from collections.abc import Callable
from typing import Any

from nicegui import events, ui

from ... import grid
from ..dashboard import Tile
from .frame import confirmed, errors_shown, heading, read_journal, tell

STYLE = """
.gw-tiles { display: grid; gap: .5rem;
  grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); }
.gw-tiles.gw-many { grid-template-columns: repeat(auto-fill, minmax(6.5rem, 1fr)); gap: .25rem;
  max-height: 32rem; overflow: auto; padding: 3px; font-size: .8rem; }
.gw-tile { border: 1px solid rgba(128,128,128,.4); border-left: 6px solid var(--gw-state);
  border-radius: .4rem; padding: .3rem .5rem; cursor: pointer; line-height: 1.35;
  font-variant-numeric: tabular-nums; overflow: hidden; color: var(--gw-text); }
.gw-tiles:not(.gw-many) .gw-tile { min-height: 7.6rem; }
.gw-many .gw-tile { padding: .1rem .3rem; white-space: nowrap; }
.gw-tile[aria-selected=true] { outline: 3px solid #1f5f8b; outline-offset: -1px;
  background: rgba(31,95,139,.14); }
body.body--dark .gw-tile[aria-selected=true] { outline-color: #8cc4ea; }
.gw-tile:focus-visible { outline: 3px solid #f5a623; }
.gw-tile-head { display: flex; gap: .3rem; align-items: center; }
.gw-tile-head b { overflow: hidden; text-overflow: ellipsis; }
.gw-tile-head .q-icon, .gw-tiles-legend .q-icon { color: var(--gw-state); font-size: 1.1em; }
.gw-tile-check { margin-left: auto; }
.gw-bar { height: .35rem; border-radius: .2rem; margin: .15rem 0;
  background: rgba(128,128,128,.25); }
.gw-bar div { height: 100%; border-radius: .2rem; background: var(--gw-state); max-width: 100%; }
.gw-tiles-legend { display: flex; flex-wrap: wrap; gap: 1rem; padding-bottom: .4rem; }
.gw-is-busy { --gw-state: #1b7a3d; } .gw-is-idle { --gw-state: #0b6e8a; }
.gw-is-finishing, .gw-is-paused { --gw-state: #9a5b00; }
.gw-is-down, .gw-is-killed { --gw-state: #b3261e; }
.gw-is-starting, .gw-is-off { --gw-state: #666; }
body.body--dark .gw-is-busy { --gw-state: #62c283; }
body.body--dark .gw-is-idle { --gw-state: #6cc0dc; }
body.body--dark .gw-is-finishing, body.body--dark .gw-is-paused { --gw-state: #f0b45a; }
body.body--dark .gw-is-down, body.body--dark .gw-is-killed { --gw-state: #ff9d94; }
body.body--dark .gw-is-starting, body.body--dark .gw-is-off { --gw-state: #aaa; }
"""


class MachineTiles(ui.element, component="machine_tiles.js"):
    """A tile for each machine: one element of the page, however many machines there are."""

    def __init__(self, chosen: Callable[[list[str]], Any]) -> None:
        super().__init__()
        ui.add_css(STYLE)
        self._chosen = chosen
        self._tiles: list[Tile] = []
        self._props["tiles"] = []
        self.classes("w-full")
        self.on("choose", self._choose)

    def show(self, tiles: list[Tile]) -> None:
        """Show the machines; only the tiles that have changed are sent."""
        before, self._tiles = self._tiles, tiles
        rows = [list(each) for each in tiles]
        if [each.name for each in before] != [each.name for each in tiles]:
            self._props["tiles"] = rows
            self.update()
            return
        changed = {
            number: row for number, row in enumerate(rows) if before[number] != tiles[number]
        }
        if changed:
            with self._props.suspend_updates():  # they would be sent whole
                self._props["tiles"] = rows
            self.run_method("change", changed)

    def choose_on_click(self, button: ui.button, states: list[str] | None) -> None:
        """Let a button select the machines in some states, or all machines for None.

        The browser does it: a way through the server would undo what is clicked meanwhile.
        """
        button.on("click", js_handler=f"() => getElement({self.id}).choose({json.dumps(states)})")

    def _choose(self, event: events.GenericEventArguments) -> None:
        known = {each.name for each in self._tiles}
        self._chosen([str(name) for name in event.args or [] if name in known])


RUNS = ("busy", "idle")
ALLOWED = {
    "pause": (*RUNS, "down", "killed"),
    "resume": ("killed",),
    "drain": (*RUNS, "finishing"),
    "start": ("down", "killed"),
    "ping": (*RUNS, "paused", "finishing", "down"),
    "kill": (*RUNS, "paused", "finishing", "down"),
    "fail": (*RUNS, "paused", "finishing"),
    "impose": (*RUNS, "paused", "finishing", "down"),
}
"""The states in which a machine can be operated so; a paused one can be resumed in any state."""


def can(verb: str, tile: Tile) -> bool:
    """Tell whether it makes sense to operate a machine so.

    A machine that is down may be paused: then it takes no jobs when it comes back.
    """
    if tile.paused and verb in ("pause", "resume"):
        return verb == "resume"
    return tile.state in ALLOWED[verb]


DONE = {
    "pause": "Paused",
    "resume": "Resumed",
    "drain": "Drained",
    "start": "Started",
    "ping": "Answered",
    "kill": "Killed",
    "fail": "Taken away",
    "impose": "CPU share imposed",
}
HINTS = {
    "pause": "give it no more jobs; its running job continues",
    "resume": "give it jobs again; start it if it was killed",
    "drain": "give it no more jobs, and wait until its running job has ended",
    "start": "start it after a failure or a kill",
    "ping": "measure how long it takes to answer",
    "kill": "end it in the middle of its job",
    "fail": "take it away for some time units",
    "impose": "give it a share of its CPU for some time units",
}


SELECTIONS: dict[str, list[str] | None] = {
    "Select all": None,
    "Select those that are down": ["down", "killed"],
    "Clear the selection": [],
}
LABELS = {"fail": "Fail now", "impose": "Impose"}
NEEDS = {
    "fail": "for how many time units",
    "impose": "the availability, a share of the CPU, and for how many time units",
}


class Machines:
    """The machines of a run, and what can be done to those that are selected."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.chosen: list[str] = []
        self.known: dict[str, Tile] = {}
        self.can_operate = False
        self.buttons: dict[str, ui.button] = {}
        heading("Machines")
        with ui.row().classes("gap-2 items-center"):
            selecting = [ui.button(label).props("flat dense no-caps") for label in SELECTIONS]
            self.words = ui.label().classes("gw-steady").props("role=status")
        with ui.row().classes("gap-2 items-end"):
            for verb in ("pause", "resume", "drain", "start", "ping", "kill"):
                self._button(verb.capitalize(), verb)
            self.period = ui.number("for time units", value=1).classes("w-32")
            self._button(LABELS["fail"], "fail", self.period)
            self.share = ui.number("availability (0 to 1)", value=0.5).classes("w-36")
            self._button(LABELS["impose"], "impose", self.share, self.period)
        self.window = ui.label().classes("gw-quiet gw-steady")
        self.tiles = MachineTiles(self._choose)
        for made, states in zip(selecting, SELECTIONS.values(), strict=True):
            self.tiles.choose_on_click(made, states)
        self._update()

    def _button(self, label: str, verb: str, *values: ui.number) -> None:
        def operate() -> Any:
            return self.operate(verb, *(each.value for each in values))

        made = ui.button(label, on_click=operate).props("outline dense")
        with made:  # above: below, it would cover the tiles
            ui.tooltip(HINTS[verb]).props('anchor="top middle" self="bottom middle"')
        if verb in ("kill", "fail"):
            made.props("color=negative")
        self.buttons[verb] = made

    def show(self, tiles: list[Tile], window: str, *, can_operate: bool) -> None:
        """Show the states of the machines; let them be operated only while the run goes on.

        ``window`` says for which time their utilisation is.
        """
        self.window.text = f"Bars: the share of {window} in which a machine ran jobs. {RATES}"
        self.known = {each.name: each for each in tiles}
        self.can_operate = can_operate
        self.tiles.show(tiles)
        self._update()

    def _choose(self, names: list[str]) -> None:
        self.chosen = names
        self._update()

    def _update(self) -> None:
        """Enable the buttons that fit the states of the selected machines."""
        tiles = [self.known[name] for name in self.chosen if name in self.known]
        for verb, each in self.buttons.items():
            each.set_enabled(self.can_operate and any(can(verb, tile) for tile in tiles))
        self.words.text = f"Selected: {_listed(self.chosen)}" if self.chosen else CHOOSE

    async def operate(self, verb: str, *values: float | None) -> None:
        """Operate the selected machines, all at once."""
        tiles = [self.known[name] for name in self.chosen if name in self.known]
        machines = [each.name for each in tiles if can(verb, each)]
        others = [each for each in tiles if not can(verb, each)]
        if None in values:
            tell(f"{LABELS[verb]}: fill in {NEEDS[verb]}")
            return
        several = len(machines) > 1
        question = (
            f"Kill machine{'s' * several} {_listed(machines)}? Running jobs are lost and run "
            f"again; {'they stay' if several else 'it stays'} away until started."
        )
        if verb == "kill" and not await confirmed(question, "Kill them" if several else "Kill it"):
            return
        words = " ".join(f"{value:g}" for value in values)
        with errors_shown():
            answers = await read_journal(
                self.number, lambda journal: grid.request_all(journal, verb, machines, words)
            )
            for text, kind in _told(verb, answers or {}):
                tell(text, kind, beside=True)
            for words in sorted({each.words for each in others}):
                left = [each.name for each in others if each.words == words]
                tell(f"{verb}: not for {_listed(left)}, {words} now", "info", beside=True)


RATES = (
    "Rates: jobs per time unit of the class that it ran most, as the grid has learnt them, or else "
    "as these jobs took; “faster” or “slower” only if chance does not explain it."
)
CHOOSE = "Select machines by a click, Shift and a click, or the arrow keys and Space."
MOST_NAMED = 6


def _listed(names: list[str]) -> str:
    """List names, but not more than a few."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _told(verb: str, answers: dict[str, str]) -> list[tuple[str, str]]:
    """Return messages about what machines answered, with the kind of each message."""
    by_answer: dict[str, list[str]] = {}
    for machine, answer in answers.items():
        if verb == "ping" and not answer.startswith("error: "):
            answer = f"{1000 * float(answer):.1f} ms"
        by_answer.setdefault(answer, []).append(machine)
    found = []
    for answer, machines in by_answer.items():
        names = f"machine{'s' * (len(machines) > 1)} {_listed(machines)}"
        if answer.startswith("error: "):
            found.append((f"{verb} {names}: {answer.removeprefix('error: ')}", "negative"))
        elif answer == "as it was":
            found.append((f"{verb} {names}: nothing to change", "info"))
        else:
            extra = "" if answer == "done" else f" in {answer}"
            found.append((f"{DONE[verb]}: {names}{extra}", "positive"))
    return found
