"""What the tabs of Define share: the cells, undo, and the messages of the model."""

from collections.abc import Callable, MutableMapping
from copy import deepcopy
from itertools import islice
from typing import Any

from nicegui import events, ui

from ...model import InputError, System
from ...model.record import Mistake
from ...model.uncertainty import Failures
from ...testbed import Experiment
from ..documents import examined, experiment_from
from ..drafts import History
from ..fields import FormField, with_labels
from ..form import Form, Place
from ..services import Services
from ..summary import size_of
from .frame import errors_shown, tell

Step = tuple[int | str, ...]
"""Where a cell stands in the document."""
MOST_SHOWN = 300
"""Machines; a system may have thousands."""
SHORT = 26
"""Letters of a label that a narrow field has room for."""
FIRST = {
    "system": {"name": "my system", "arrivals": [5, 8], "rates": [[8, 3], [4, 10]]},
    "corrections": False,
}


class Cells:
    """The form that the user fills in; every step can be undone, also after a reload."""

    def __init__(self, kept: MutableMapping[str, Any], services: Services) -> None:
        self.kept, self.services = kept, services
        self.history = History(FIRST)
        with errors_shown():
            self.history = History.open(str(kept.get("draft"))) or self.history
        self.form = Form.of(self.history.document)
        self.parts: dict[str, Part] = {}
        self.visible = ""
        """The name of the part that is shown; only this one follows every change."""
        self.found: list[Mistake] = []
        self.system: System | None = None
        """The system, if it is one."""
        self._drawing = True
        self.checked: Callable[[], None] = lambda: None

    def experiment(self) -> Experiment:
        """Return the experiment, or raise an error in one line."""
        try:
            return experiment_from(self.form.document())
        except InputError as error:
            raise InputError(self.in_words(str(error))) from None

    def in_words(self, message: str) -> str:
        """Name fields and cells as the page shows them."""
        return self.form.with_names(with_labels(message, Experiment, Failures))

    def shown(self) -> dict[str, Place]:
        """Return the places of the first machines by name, as many as tables show."""
        pairs = zip(self.form.names(), self.form.sheet.machines(), strict=True)
        return dict(islice(pairs, MOST_SHOWN))

    def act(self, change: Callable[[], Any]) -> None:
        """Make a change that concerns several cells, and draw the parts again."""
        before = deepcopy(self.form)
        try:
            change()
        except InputError as error:
            self.form = before  # a part of the change may have been made
            tell(error)
        self.lay_out()

    def take(self, document: dict[str, Any], *, edited: bool) -> None:
        """Begin a draft with another definition; a system alone keeps the rest of the experiment.

        The old definition stays a draft, and can also be undone to.
        """
        old = self.form.document()
        if set(document) == {"system"}:
            own = ("machines", "calibrations", "prediction")  # were said of other machines
            kept = {key: value for key, value in old.items() if key not in own}
            if not isinstance(kept["failures"], str):
                kept["failures"] = "generated"
            document = {**kept, **document}
        self.form = Form.of(document)
        self.history = History(self.history.document)
        self._keep(self.form.document(), edited=edited)
        if not edited:
            self.mark_saved()
        self.lay_out()

    def open(self, history: History) -> None:
        """Continue a draft."""
        self.history = history
        self.kept["draft"] = history.key
        self._show_version()

    def undo(self) -> None:
        """Undo the last step."""
        self._go(-1)

    def redo(self) -> None:
        """Do again what was undone."""
        self._go(1)

    def mark_saved(self) -> None:
        """Note that the definition is saved as it is shown."""
        with errors_shown():
            self.history.mark_saved()

    def _go(self, step: int) -> None:
        with errors_shown():
            self.history.go(step)
            self._show_version()
        self._tell_apart()

    def _show_version(self) -> None:
        self.form = Form.of(self.history.document)
        self.lay_out(keep=False)

    def _keep(self, document: dict[str, Any], *, edited: bool = True) -> None:
        """Keep a version of the definition, if it is a new one."""
        rows, columns = len(self.form.sheet.rates), len(self.form.sheet.machines())
        with errors_shown():
            self.history.add(document, size_of(rows, columns), edited=edited)
        if self.kept.get("draft") != self.history.key:
            self.kept["draft"] = self.history.key
        self._tell_apart()

    def _tell_apart(self) -> None:
        if self.history.is_apart:
            self.history.is_apart = False
            tell("Another tab has changed this draft; yours is now a draft of its own", "warning")

    def lay_out(self, *, keep: bool = True) -> None:
        """Draw every part again."""
        self._drawing = True
        for part in self.parts.values():
            part.lay_out()
        self._drawing = False
        self.check(keep=keep)

    def check(self, *, keep: bool = True) -> None:
        """Show beside each cell what is wrong with it, and keep the definition."""
        if self._drawing:
            return
        document = self.form.document()
        if keep:
            self._keep(document)
        found, self.system = examined(document)
        self.found = [Mistake(each.place, self.in_words(each.words)) for each in found]
        words = {each.place: each.words for each in self.found}
        for name, part in self.parts.items():
            part.show_mistakes(words)
            if name == self.visible:
                part.refresh()
        self.checked()

    def turn_to(self, name: str) -> None:
        """Bring a part up to date that is now visible."""
        self.visible = name
        self.parts[name].refresh()

    def wrong_parts(self) -> set[str]:
        """Return the names of the parts that have mistakes."""
        places = {each.place for each in self.found}
        if not places:
            return set()
        return {name for name, part in self.parts.items() if places & part.places()}

    def field(
        self, label: str, value: str, put: Callable[[str], Any], *, cell: bool = False
    ) -> ui.input:
        """Make a field; ``put`` takes what is typed, and the form is checked."""
        changed = self._changing(put)
        made = ui.input(None if cell else label, value=value, on_change=changed)
        made.props("dense debounce=250").props["aria-label"] = label
        made.without_auto_validation()  # the model's own words stay
        if cell:
            return made.props("hide-bottom-space").classes("gw-cell").style("width: 5rem")
        made.props("bottom-slots")  # room for words, so that nothing jumps when they come
        return made.classes("w-48" if len(label) < SHORT else "w-64")

    def model_field(
        self, field: FormField, value: str, put: Callable[[str], Any]
    ) -> ui.input | ui.select:
        """Make a field of a model, with its label and hint: a list to choose from, or an input."""
        if field.choices:
            return self.choice(field.label, dict(field.choices), value, put)
        made = self.field(field.label, value, put)
        made.props["hint"] = field.hint
        return made

    def choice(
        self,
        label: str,
        options: dict[str, str],
        value: str,
        put: Callable[[str], Any],
        *,
        search: bool = False,
    ) -> ui.select:
        """Make a list to choose from; with ``search``, typing filters it."""
        known, changed = {**options, value: options.get(value, value)}, self._changing(put)
        made = ui.select(known, label=label, value=value, on_change=changed, with_input=search)
        made.props("dense options-dense bottom-slots").classes("w-64")
        return made.without_auto_validation()

    def _changing(self, put: Callable[[str], Any]) -> Callable[[Any], None]:
        def changed(event: events.ValueChangeEventArguments[Any]) -> None:
            put(str(event.value or ""))
            self.check()

        return changed


class Part:
    """A tab of Define."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.inputs: dict[Step, Any] = {}
        """The fields by place; messages appear beside them."""

    def lay_out(self) -> None:
        """Draw the tab again."""

    def places(self) -> set[Step]:
        """Return the places of the cells that the tab shows."""
        return set(self.inputs)

    def show_mistakes(self, words: dict[Step, str]) -> None:
        """Show mistakes beside the fields."""
        for place, made in self.inputs.items():
            made.error = words.get(place)

    def refresh(self) -> None:
        """Show what depends on the cells; called when one has changed, if the tab is visible."""
