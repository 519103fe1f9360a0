"""The page Simulate: policies on one system, and the results at an address of their own."""

from contextlib import suppress
from functools import partial

from fastapi import Request
from nicegui import run as background
from nicegui import ui

from ...catalogue import find
from ...model import InputError, System
from ..documents import document_of, system_of
from ..drafts import Draft
from ..fields import fields_of, validated
from ..findings import Document, list_documents
from ..guard import may_run_code
from ..saved import OWN
from ..services import Services
from ..simulations import HORIZON, Simulation, Wanted, document_at, simulation_of
from ..summary import facts
from .frame import (
    Picker,
    frame,
    html_table,
    model_input,
    read_input,
    shell,
    system_choices,
    system_named,
    tell,
)
from .policy_form import CodeField, PolicyForm
from .results import Results

FIELDS = fields_of(Wanted)
FIRST_POLICIES = ["mct", "lpas"]
GIVEN = "given"
"""Chooses a system that was simulated, but is neither in the catalogue nor saved like that."""
NUMBERS = ("horizon", "replications", "seed")
USE = "Every function with @push or @pull is simulated together with the policies above."
NOTHING = "No simulation yet: choose a system and policies, then press Start."


async def simulate_page(services: Services, request: Request, address: str = "") -> None:
    """Show the form and the results at an address, or the latest; only trusted users run code.

    A reload keeps the form and the results.
    """
    client = ui.context.client
    shell()
    await client.connected()
    if client.is_deleted:  # the browser never opened the page
        return
    draft = Draft(client.tab_id or "")
    found = document_at(services.queue, address) if address else _latest(services, draft)
    if found is not None and address and (draft.get("simulate") or {}).get("shown") != address:
        draft["simulate"] = _form_of(found)
    with frame("Simulate"):
        if address and found is None:
            ui.label(f"There is no simulation {address[:40]}; it was never kept, or is too old.")
            ui.link("All results", "/simulate")
            return
        Simulator(services, draft, found, trusted=may_run_code(request))


def _latest(services: Services, draft: Draft) -> Document | None:
    """Return the results that the tab showed last, or the latest ones of this server.

    None if Define has filled in the form: nothing was simulated yet.
    """
    shown = (draft.get("simulate") or {}).get("shown")
    if shown == "":
        return None
    found = document_at(services.queue, str(shown)) if shown else None
    latest = services.queue.all(Simulation)
    return found or (latest[0].findings() if latest else None)


def _form_of(found: Document) -> Document:
    """Return the form that leads to results."""
    return {**found["wanted"], "shown": found["address"]}


class Simulator:
    """The form and the results."""

    def __init__(
        self, services: Services, draft: Draft, found: Document | None, *, trusted: bool
    ) -> None:
        self.services, self.draft, self.trusted = services, draft, trusted
        self.found, self.busy = found, False
        self.seen: tuple[object, ...] = ()
        shown = None if found is None else found["address"]
        known = services.queue.all(Simulation)
        self.running = next((each for each in known if each.address == shown), None)
        """The simulation whose results are shown, unless an earlier server ran it."""
        with ui.card().classes("w-full"):
            self._form()
        with ui.card().classes("w-full"):
            self.results = Results()
            self.results.state.text = NOTHING
        with ui.expansion("Earlier results").props("dense").classes("w-full") as earlier:
            place = ui.column().classes("w-full")
        earlier.on_value_change(lambda event: _list_earlier(place) if event.value else None)
        if found is not None:
            self.results.show(found)
            if found["error"]:
                self.code.show_error(found["error"])
        ui.timer(0.5, self.show)

    def _form(self) -> None:
        self.system = Picker(system_choices(), "System", "2.B")
        self.system.classes("w-full max-w-3xl")
        self.about = ui.label().classes("gw-steady text-sm")
        self.policies = PolicyForm(FIRST_POLICIES)
        kept = self.draft.get("simulate") or {}
        self.code = CodeField(str(kept.get("code") or ""), self.trusted, USE)
        with ui.row().classes("gap-2 items-end"):
            self.inputs = {key: model_input(FIELDS[key]) for key in NUMBERS}
        self.first = kept.get("shown")
        self._restore(kept)
        with ui.row().classes("gap-2"):
            ui.button("Start", on_click=self.start)
            ui.button("Stop", on_click=self.stop).props("outline")

    def _restore(self, kept: Document) -> None:
        """Fill the form, and remember it from now on."""
        self.given = kept["system"] if isinstance(kept.get("system"), dict) else None
        if self.given is not None:
            self.system.value = self._offer_given(self.given)
        elif kept.get("system") in self.system.options:
            self.system.value = kept["system"]
        if "policies" in kept:
            self.policies.choose(*map(str, kept["policies"]))
        for key, made in self.inputs.items():
            if key in kept:
                made.value = kept[key]
        self.system.on_value_change(self._describe)
        ui.timer(0.01, self._describe, once=True)
        ui.timer(0.5, self._remember)

    def _offer_given(self, document: Document) -> str:
        """Offer a system that may not be saved; return its place in the list."""
        name = str(document.get("name", ""))
        own = f"{OWN}{name}"
        if own in self.system.options:
            with suppress(InputError):
                if document_of(system_named(own)) == document_of(system_of(document)):
                    return own
        label = f"{name or 'a system without a name'} (as it was defined)"
        self.system.set_options({GIVEN: label, **system_choices()})
        return GIVEN

    def _chosen(self, name: str) -> System:
        return system_of(self.given) if name == GIVEN and self.given else system_named(name)

    async def _describe(self) -> None:
        """Show what the chosen system is like, and which policies cannot run it."""
        name = self.system.value
        find = partial(self._chosen, str(name))
        found = await background.io_bound(facts, find) if name else None
        if self.system.value == name and not self.about.is_deleted:
            words, unfit = found or ("", {})
            self.about.text = words
            if name:
                self.inputs["horizon"].props(f'hint="{_default_length(str(name))}"')
            self.policies.chosen.grey_out(unfit)

    def _remember(self) -> None:
        self.draft["simulate"] = {
            "system": self.given if self.system.value == GIVEN else self.system.value,
            "policies": self.policies.names(),
            "code": self.code.text,
            "shown": self.first if self.found is None else self.found["address"],
            **{key: made.value for key, made in self.inputs.items()},
        }

    async def start(self) -> None:
        """Start a simulation, and go to its address."""
        self.code.show_error("")
        try:
            name = self.system.chosen()
            own = not name or name.startswith(OWN) or name == GIVEN
            given = {
                "system": document_of(self._chosen(name)) if own else name,
                "policies": tuple(self.policies.names()),
                "code": self.code.text,
                **{key: read_input(FIELDS[key], each) for key, each in self.inputs.items()},
            }
            made = await background.io_bound(simulation_of, validated(Wanted, given))
            if made is not None:  # else the server is shutting down
                self.running = self.services.queue.start(made)
                self.found, self.seen = self.running.findings(), ()
                self.results.show(self.found)
                self._remember()
                ui.navigate.history.replace(f"/simulate/{made.address}")
        except InputError as error:
            if not self.code.show_error(str(error)):
                tell(error)

    def stop(self) -> None:
        """Stop the simulation."""
        if self.running is None or self.running.is_over:
            tell("no simulation is running", "info")
        else:
            self.services.queue.stop(self.running)

    async def show(self) -> None:
        """Show the results so far, if there are more of them."""
        task = self.running
        if task is None or self.busy:
            return
        seen = (task.state, *(len(each.replications) for each in list(task.results.values())))
        self.results.bar.value = round(task.share, 3)
        if seen == self.seen:
            return
        self.busy = True
        try:
            found = await background.io_bound(task.findings)  # it adds up all responses
        finally:
            self.busy = False
        if found is not None and task is self.running:
            self.found, self.seen = found, seen
            self.results.show(found)
            if found["error"]:
                self.code.show_error(found["error"])


def _default_length(name: str) -> str:
    """Say how long a system is simulated if the field is empty."""
    published = None if name == GIVEN or name.startswith(OWN) else find(name).horizon
    return f"Empty: {published or HORIZON:,g}{', as published' if published else ''}"


def _list_earlier(place: ui.column) -> None:
    place.clear()
    with place:
        rows = [
            (
                (each["made"].replace("T", " ").partition("+")[0], f"/simulate/{each['address']}"),
                each["system"],
                ", ".join(each["policies"]),
                each["length"],
                " ".join(each["conclusions"]) or each["state"],
            )
            for each in list_documents()
        ]
        heads = ("made (UTC)", "system", "policies", "length", "found")
        html_table("", heads, rows) if rows else ui.label("None yet.")
