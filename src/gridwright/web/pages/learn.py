"""Learn: eight guided stops, each a system in motion beside its text and a question."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastapi import Request
from nicegui import events, ui

from ...allocation import Allocation, allocate, long_run_of
from ...experiments.variation import varied
from ...model import InputError, System
from ...reproduction import shipped
from ..api.systems import describe_policy
from ..film import film
from ..polygon import polygon, words
from ..queue import solved
from ..services import Services
from ..stops import Settings, Stop, offered, stops
from .allocation import heat_map
from .charts import COLOURS
from .frame import frame, heading, tell
from .policy_form import PolicyPicker

ELSEWHERE = "http://localhost:8080"
"""Where the docs say that the page is; this server may be somewhere else."""
FIGURES = "/learn-figures"
"""Where the server offers the pictures of the pages."""
STYLE = """
.gw-stops a { color: inherit; }
nav.gw-stops { gap: .4rem; }
nav.gw-stops a { padding: .25rem .7rem; border: 1px solid rgba(128,128,128,.5);
  border-radius: 1rem; text-decoration: none; }
nav.gw-stops a[aria-current] { background: #1f5f8b; border-color: #1f5f8b; color: #fff !important; }
.gw-flow-controls { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; }
.gw-flow-controls button {
  padding: .3rem .9rem; border: 1px solid currentColor; border-radius: .3rem; font-weight: 600; }
.gw-flow-controls input { vertical-align: middle; accent-color: #1f5f8b; }
.gw-flow-controls span { display: inline-block; font-variant-numeric: tabular-nums; }
.gw-flow-legend {
  display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; margin: .5rem 0; padding: 0; }
.gw-flow-legend canvas { display: inline-block; vertical-align: middle; }
.gw-flow-films {
  display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
.gw-flow-busy .gw-flow-films, .gw-flow-busy > figure { opacity: .35; }
.gw-slider { display: inline-flex; flex-wrap: wrap; gap: 0 .6rem; align-items: center; }
.gw-slider input { width: 10rem; accent-color: #1f5f8b; }
.gw-slider b { display: inline-block; min-width: 3.2rem; font-variant-numeric: tabular-nums; }
.gw-flow figure { margin: 0; min-width: 0; }
.gw-flow figcaption { font-weight: 600; }
.gw-flow canvas[role=img] { width: 100%; display: block; }
.gw-polygon { width: 100%; height: auto; font-size: 11px; }
.gw-polygon text { fill: currentColor; }
.gw-polygon-legend { list-style: none; margin: 0; padding: 0; }
.gw-polygon-legend svg { display: inline-block; vertical-align: middle; margin-right: .4rem; }
.gw-flow-words { min-height: 4.5rem; font-variant-numeric: tabular-nums; }
"""
LEAST_LOAD, MOST_LOAD = 0.1, 1.2
STEPS = 40
"""Steps of a slider for a rate."""


LAB = {
    "lab-instability.ipynb": "The lab (notebook)",
    "lab-instability-teacher.ipynb": "Answers and notes for the teacher (notebook)",
}
OPENING = """
To open it, install JupyterLab with `pip install 'gridwright[notebook]'` and start `jupyter lab
lab-instability.ipynb` where you saved it. In a copy of the repository, `make lab` does both.
"""


ARROWS = """(event) => {
  const step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[event.key];
  const answers = [...event.currentTarget.querySelectorAll("[role=radio]")];
  const at = answers.indexOf(document.activeElement.closest("[role=radio]"));
  if (!step || at < 0) return;
  event.preventDefault();
  answers[(at + step + answers.length) % answers.length].focus();
}"""
"""Arrow keys move between answers without choosing one: a choice is judged at once."""


class Flow(ui.element, component="flow.js"):
    """Films of one system, each drawn on a canvas; the browser plays them at any speed."""

    def __init__(self) -> None:
        super().__init__()
        self.classes("w-full")
        self._props["scene"] = {"classes": [], "machines": [], "films": [], "end": 1, "number": 0}
        self._props["colours"] = list(COLOURS)

    def wait(self, number: int) -> None:
        """Dim the films until those of a number are shown."""
        self.run_method("wait", number)

    def go_on(self) -> None:
        """Show the films again: no others come."""
        self.wait(self._props["scene"]["number"])

    def go_to(self, time: float) -> None:
        """Stop the films at a time."""
        self.run_method("goTo", time)

    def show(self, system: System, films: list[dict[str, Any]], end: float, number: int) -> None:
        """Show other films; they start from the beginning."""
        self._props["scene"] = {
            "classes": list(system.classes),
            "machines": list(system.machines),
            "films": films,
            "end": end,
            "number": number,
        }
        self.update()


def learn_page(services: Services, request: Request, number: str = "1") -> None:
    """Draw the page of one stop as its address says; an unknown number is the first."""
    known = stops()
    place = int(number) - 1 if number in map(str, range(1, len(known) + 1)) else 0
    ui.add_css(STYLE)
    with frame("Learn"):
        _navigation(place)
        _Lesson(known[place], place, Settings.of(known[place], request.query_params))
        if place + 1 < len(known):
            with ui.element("div").classes("gw-stops font-bold"):
                ui.link(f"Next stop: {known[place + 1].title}", f"/learn/{place + 2}")
        else:
            _reading_list()


def reading_page(services: Services, name: str) -> None:
    """Draw a page of docs/learn, with links to the stops that are about it."""
    ui.add_css(STYLE)
    with frame("Learn"):
        _navigation()
        text = page_of(name)
        if text is None:
            ui.label("There is no such page.")
            return
        ui.markdown(text).classes("w-full max-w-4xl")
        with ui.element("div").classes("gw-stops flex flex-col gap-2 font-bold"):
            for k, stop in enumerate(stops()):
                if stop.read == name:
                    ui.link(f"See it move: stop {k + 1}, {stop.title}", f"/learn/{k + 1}")
        _reading_list(name)


def _reading_list(here: str = "") -> None:
    """Offer the pages of docs/learn; some are about no stop."""
    heading("More to read").classes("text-lg")
    with ui.element("ul").classes("gw-stops"):
        for path in sorted(shipped("learn").glob("*.md")):
            if path.stem != here:
                title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
                title = title.replace("\\", "")
                with ui.element("li"):
                    ui.link(title, f"/learn/read/{path.stem}")


def _navigation(place: int | None = None) -> None:
    with (
        ui.element("nav")
        .classes("gw-stops flex flex-wrap gap-4 items-center")
        .props('aria-label="Stops"')
    ):
        for k, stop in enumerate(stops()):
            link = ui.link(f"{k + 1}. {stop.title}", f"/learn/{k + 1}")
            if k == place:
                link.props("aria-current=page").classes("font-bold")


class _Slider(ui.element, component="slider.js"):
    """A slider that the keyboard moves; it shows its value at once, and tells it after a pause."""

    def __init__(
        self,
        title: str,
        label: str,
        range_: tuple[float, float, float],
        changed: Callable[[float], Awaitable[None]],
        *,
        percent: bool = False,
    ) -> None:
        """Make a slider from the least to the most value in steps."""
        super().__init__()
        least, most, step = range_
        more = {"title": title, "label": label, "percent": percent, "value": least}
        self._props.update({**more, "least": least, "most": most, "step": step})
        self._heard = 0

        async def hear(event: events.GenericEventArguments) -> None:
            value, self._heard = float(event.args[0]), int(event.args[1])
            await changed(min(max(value, least), most))

        self.on("moved", hear)

    def show(self, value: float) -> None:
        """Move the slider, unless it is being moved."""
        self._props["value"] = value  # of a page that is not drawn yet
        self.run_method("show", value, self._heard)


class _Lesson:
    """One stop: its text and question, sliders, and the films of its policies."""

    def __init__(self, stop: Stop, place: int, first: Settings) -> None:
        self.stop, self.place = stop, place
        self.system, self.seed = first.system, first.seed
        self.policies: list[PolicyPicker] = []
        self.query = first.query(stop)
        self.wanted = 0
        """How often films were asked for: only the last ones are shown."""
        heading(f"{place + 1}. {stop.title}").classes("text-xl")
        with ui.element("div").classes("grid gap-4 w-full lg:grid-cols-1-2"):
            with ui.column().classes("min-w-0"):
                ui.markdown(stop.text)
                self._try()
                self._question()
                if stop.lab:
                    _lab()
            with ui.column().classes("min-w-0 w-full"):
                self.flow = Flow()
                self._choices(first.policies)
                self._sliders()
                self._plan()
        ui.timer(0.05, self.show, once=True)

    def _plan(self) -> None:
        with ui.element("div").classes("grid gap-4 w-full md:grid-cols-2"):
            if len(self.system.classes) == 2:
                with ui.column().classes("min-w-0"):
                    heading("What the machines can serve", 3).classes("text-lg")
                    self.polygon = ui.html("", sanitize=False).classes("w-full max-w-md")
                    self.polygon_words = ui.label()
            with ui.column().classes("min-w-0"):
                heading("The plan and its prices", 3).classes("text-lg")
                self.plan = ui.html("", sanitize=False).classes("gw-scroll")
                self.prices = ui.label()

    def _try(self) -> None:
        heading("Try it", 3).classes("text-lg")
        for title, text in (("Predict", self.stop.predict), ("Do", self.stop.do)):
            ui.markdown(f"**{title}.** {text}")
        ui.button("Do it for me", on_click=self._do).props("flat dense")
        with ui.expansion("See what happens").props("dense").classes("w-full"):
            ui.markdown(self.stop.see)

    async def _do(self) -> None:
        """Make the change that the text asks for, and go to the time that it speaks of."""
        self._go_back()
        self.system = self.stop.tried()
        await self.show()
        self.flow.go_to(self.stop.try_.get("time", self.stop.end))

    def _question(self) -> None:
        heading("Question", 3).classes("text-lg")
        ui.markdown(self.stop.question)
        self.chosen = ui.radio(dict(enumerate(self.stop.choices)), on_change=self._judge)
        self.chosen.props('aria-label="Answers"').on("keydown", js_handler=ARROWS)
        self.verdict = ui.label().classes("font-bold").props("role=status")
        self.answer = ui.markdown("")
        with ui.element("div").classes("gw-stops"):
            ui.link("Read more about this idea", f"/learn/read/{self.stop.read}")

    def _judge(self) -> None:
        chosen = int(self.chosen.value)
        is_right = chosen == self.stop.right
        self.verdict.text = "Right." if is_right else "Not this one."
        self.answer.content = self.stop.answer if is_right else self.stop.hints[chosen]

    def _choices(self, first: Sequence[str]) -> None:
        known = {name: describe_policy(each) for name, each in offered().items()}
        with ui.element("div").classes("grid gap-4 w-full md:grid-cols-2"):
            for label, policy in zip(("Left", "Right"), first, strict=True):
                made = PolicyPicker(known, f"{label} policy", policy, self._policy_chosen)
                self.policies.append(made.classes("w-full"))

    def _sliders(self) -> None:
        with ui.row().classes("items-center w-full"):
            steps = (LEAST_LOAD, MOST_LOAD, 0.01)
            self.load = _Slider("Load", "Load", steps, self._set_load, percent=True)
            self.load_words = ui.label()
            self.state = ui.label("Simulating …").classes("font-bold").props("role=status")
            self.words = ui.label().classes("w-full")
            ui.button("New arrivals", on_click=self._draw_again).props("flat")
            ui.button("As in the text", on_click=self._reset).props("flat")
            ui.label("The address of this page keeps load, rates, policies and arrivals: share it.")
        self.rates: dict[tuple[int, int], _Slider] = {}
        with (
            ui.expansion("Rates: tasks that a machine finishes per time unit").classes("w-full"),
            ui.element("div").classes("grid gap-x-6 w-full sm:grid-cols-2"),
        ):
            for i, name in enumerate(self.system.classes):
                for j, machine in enumerate(self.system.machines):
                    self._rate_slider(i, j, f"class {name} on machine {machine}")

    def _rate_slider(self, i: int, j: int, label: str) -> None:
        most = 2 * self.stop.rates[i][j] or max(self.stop.rates[i])

        async def changed(value: float) -> None:
            rates = self.system.rates.copy()
            rates[i, j] = value
            if not rates[i].any():
                name = self.system.classes[i]
                tell(f"Class {name} must run on some machine: keep one of its rates above 0.")
                self._show_sliders()
                return
            await self._change(lambda: self.system.replace(rates=rates.tolist()))

        steps = (0.0, most, most / STEPS)
        self.rates[i, j] = _Slider(f"{label}:", f"Rate of {label}", steps, changed)

    async def _set_load(self, value: float) -> None:
        await self._change(lambda: varied(self.system, "load", value))

    async def _change(self, make: Callable[[], System]) -> None:
        """Show a changed system; keep the shown one if the change is impossible."""
        try:
            self.system = make()
        except InputError as error:
            tell(error)
            self._show_sliders()
        else:
            await self.show()

    async def _draw_again(self) -> None:
        self.seed += 1
        await self.show()

    async def _reset(self) -> None:
        self._go_back()
        await self.show()

    def _go_back(self) -> None:
        """Choose what the text speaks of."""
        self.system, self.seed = self.stop.system, 1
        for made, policy in zip(self.policies, self.stop.policies, strict=True):
            made.value = policy

    async def _policy_chosen(self) -> None:
        if all(each.value for each in self.policies):
            await self.show()

    async def show(self) -> None:
        """Simulate the system under each policy, and show the films."""
        self.wanted += 1
        asked, system, seed, end = self.wanted, self.system, self.seed, self.stop.end
        chosen = [str(each.value) for each in self.policies]
        self._show_sliders()
        self._keep(Settings(system, tuple(chosen), seed))
        self.state.text = "Simulating …"
        self.flow.wait(asked)
        try:
            films = await solved(
                lambda: [film(system, each, end, seed) for each in chosen if asked == self.wanted]
            )
        except InputError as error:
            if asked == self.wanted:
                self.flow.go_on()
                self.state.text = str(error)
            return
        if asked == self.wanted:
            self.flow.show(system, films, end, asked)
            self.state.text = f"{len(films[0]['tasks'])} tasks, the same for each policy."

    def _keep(self, settings: Settings) -> None:
        """Put what differs from the text into the address: Back and a reload find it again."""
        query = settings.query(self.stop)
        if query != self.query:
            self.query = query
            ui.navigate.history.replace(f"/learn/{self.place + 1}{'?' if query else ''}{query}")

    def _show_sliders(self) -> None:
        found = allocate(self.system)
        load = long_run_of(self.system).load or found.load  # failures included
        self.load.show(load)
        arrivals = ", ".join(f"{each:.3g}" for each in self.system.arrival_rates)
        self.load_words.text = f"(arrivals per time unit: {arrivals})"
        self.words.text = found.verdict.words
        for pair, slider in self.rates.items():
            slider.show(float(self.system.rates[pair]))
        if len(self.system.classes) == 2:
            self.polygon.content = polygon(found)
            self.polygon_words.text = words(found)
        self.plan.content = heat_map(found)
        self.prices.text = _prices(found)


def _prices(found: Allocation) -> str:
    """Say what tasks and machines are worth, and which pair wastes most time."""
    system = found.system
    classes = ", ".join(
        f"class {name} {price:.3f}"
        for name, price in zip(system.classes, found.class_prices, strict=True)
    )
    machines = ", ".join(
        f"machine {name} {price:.3f}"
        for name, price in zip(system.machines, found.machine_prices, strict=True)
    )
    least, pair = min(
        (float(found.efficiencies[i, j]), f"class {name} on machine {machine}")
        for i, name in enumerate(system.classes)
        for j, machine in enumerate(system.machines)
        if system.rates[i, j] > 0
    )
    return (
        f"Prices in λ* per task a time unit: {classes}. "
        f"Worth in λ* per machine: {machines}; together {found.capacity:.3f}, which is λ*. "
        f"The least efficient pair is {pair}: {least:.2f} of the worth of the machine."
    )


def _lab() -> None:
    """Offer the lab, and say how to open it."""
    heading("The lab", 3).classes("text-lg")
    ui.label(
        "Ninety minutes on instability as a notebook, with predictions first and checked exercises."
    )
    with ui.element("div").classes("gw-stops flex flex-wrap gap-4"):
        for file, words in LAB.items():
            ui.link(words, f"/lab/{file}").props(f"download={file}")
    ui.markdown(OPENING)


def page_of(name: str) -> str | None:
    """Return a page of docs/learn as Markdown for the browser; None if there is no such page.

    >>> page_of("why-the-allocation")[:23]
    '# Why the allocation LP'
    >>> page_of("../why") is None
    True
    """
    known = {path.stem: path for path in shipped("learn").glob("*.md")}
    return for_browser(known[name].read_text("utf-8")) if name in known else None


def for_browser(text: str) -> str:
    """Point pictures and links to what the server has; other links become plain text.

    >>> for_browser("![x](../figures/a.svg), [zeros](what-the-zeros-do.md), [why](../why.md#one)")
    '![x](/learn-figures/a.svg), [zeros](/learn/read/what-the-zeros-do), why'
    """
    text = text.replace("](../figures/", f"]({FIGURES}/").replace(f"]({ELSEWHERE}/", "](/")
    text = re.sub(r"\]\(([\w-]+)\.md\)", r"](/learn/read/\1)", text)
    return re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", text)
