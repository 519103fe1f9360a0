"""A form that chooses policies and their parameters, and a field for code of one's own."""

import json
from typing import Any

from nicegui import ui

from ...model import InputError
from ...policies import BATCH, CHAIN, PEER, PULL, PUSH, Policy, find, policies
from ..api.systems import describe_policy
from ..pasted_policy import line_of


def shipped_policies() -> dict[str, Policy]:
    """Return the policies of the package by name; other files may have registered more."""
    return {name: each for name, each in policies().items() if each.is_shipped}


class PolicyForm:
    """Policies to choose from, and a field for every parameter of the chosen ones."""

    def __init__(self, first: list[str], *, several: bool = True):
        self.known = {name: describe_policy(each) for name, each in shipped_policies().items()}
        self.fields: dict[tuple[str, str], Any] = {}
        self.chosen = PolicyPicker(
            self.known,
            "Policies" if several else "Policy",
            first if several else first[0],
            self._lay_out,
        )
        self.chosen.classes("w-full max-w-3xl")
        if several:
            self.chosen.props("use-chips")
        self.place = ui.column().classes("gap-1")
        self._lay_out()

    def names(self) -> list[str]:
        """Return the policies with their parameters that differ from the defaults."""
        return [self._named(name) for name in self._chosen()]

    def choose(self, *policies: str) -> None:
        """Choose policies with their parameters; leave out what the list does not have."""
        parts = [policy.split(":") for policy in policies]
        names = [name for name, *_ in parts if name in self.known]
        several = isinstance(self.chosen.value, list)
        self.chosen.value = names if several else next(iter(names), None)
        for name, *words in parts:
            for word in words:
                key, _, value = word.partition("=")
                field = self.fields.get((name, key))
                if field is not None:
                    field.value = value == "true" if isinstance(field.value, bool) else value

    def _chosen(self) -> list[str]:
        value = self.chosen.value or []
        return list(value) if isinstance(value, list) else [value]

    def _named(self, name: str) -> str:
        words = [name]
        for parameter in self.known[name]["parameters"]:
            made = self.fields.get((name, parameter["name"]))
            value = parameter["default"] if made is None else _word(made.value)
            if value != parameter["default"]:
                words.append(f"{parameter['name']}={value}")
        return ":".join(words)

    def _lay_out(self) -> None:
        self.place.clear()
        self.fields = {}
        with self.place:
            for name in self._chosen():
                parameters = self.known[name]["parameters"]
                if not parameters:
                    continue
                with (
                    ui.expansion(f"Parameters of {name}").props("dense"),
                    ui.row().classes("gap-2 items-end"),
                ):
                    for each in parameters:
                        self.fields[name, each["name"]] = self._field(name, each)

    def _field(self, policy: str, parameter: dict[str, Any]) -> Any:
        key, kind, default = parameter["name"], parameter["kind"], parameter["default"]
        if kind == "choice":
            return ui.select(parameter["choices"], label=key, value=default).classes("w-40")
        if kind == "boolean":
            return ui.switch(key, value=default == "true")

        def changed(event: Any) -> None:
            event.sender.error = None
            try:
                find(self._named(policy))
            except InputError as error:
                event.sender.error = str(error)

        made = ui.input(key, value=default, on_change=changed).without_auto_validation()
        return made.classes("w-40").props(f'dense debounce=250 aria-label="{key} of {policy}"')


HEAD = "kind "
"""Starts the keys of the heads of groups."""
OPTION = """
<q-item v-bind="props.itemProps">
  <q-item-section>
    <q-item-label :class="props.opt.head ? 'text-weight-bold' : ''">
      {{ props.opt.label }}
    </q-item-label>
    <q-item-label caption v-if="props.opt.reason">{{ props.opt.reason }}</q-item-label>
  </q-item-section>
</q-item>
"""


class PolicyPicker(ui.select):
    """Policies grouped by kind; Enter takes a sole match; those that do not fit are grey."""

    def __init__(
        self, known: dict[str, dict[str, Any]], label: str, value: Any, on_change: Any
    ) -> None:
        self.known = known
        self.misfits: dict[str, str] = {}
        """Policies that cannot run the chosen system, and why."""
        self.typed = ""
        several = isinstance(value, list)
        super().__init__(
            _grouped(known),
            label=label,
            multiple=several,
            value=value,
            with_input=True,
            on_change=on_change,
        )
        self.props("input-debounce=0")  # a list that is shown later would open after Enter
        self.add_slot("option", OPTION)
        self.on("input-value", lambda event: self._note(str(event.args or "")))
        self.on("keydown.enter", self._take_sole)
        # Quasar shows the chosen ones first, in the middle of the list.
        self.on("popup-show", lambda: self.run_method("scrollTo", 0, "start-force"))

    def grey_out(self, misfits: dict[str, str]) -> None:
        """Show which policies do not fit, and why."""
        if misfits != self.misfits:
            self.misfits = misfits
            self.update()

    def _update_options(self) -> None:
        super()._update_options()
        for each, key in zip(self._props["options"], self._values, strict=True):
            each["head"] = key not in self.known
            each["reason"] = self.misfits.get(key, "").partition(";")[0]  # the short part of it
            each["disable"] = each["head"] or bool(each["reason"])

    def _note(self, text: str) -> None:
        self.typed = text.strip().casefold()

    def _take_sole(self) -> None:
        """Choose the policy of that name, or the only one that matches; else show the list."""
        fit = [name for name in self.known if name not in self.misfits]
        found = [name for name in fit if name.casefold() == self.typed]
        lines = {name: _line(name, self.known[name]).casefold() for name in fit}
        found = found or [name for name, line in lines.items() if self.typed in line]
        if not self.typed:
            return
        if len(found) != 1:
            self.run_method("showPopup")  # Enter has closed an open list
            return
        (name,) = found
        if self.multiple:
            self.value = [*self.value, *([] if name in self.value else [name])]
            self.run_method("updateInputValue", "")
        else:
            self.value = name
            self.run_method("updateInputValue", _line(name, self.known[name]), True)
            self.run_method("hidePopup")
        self.typed = ""


def _line(name: str, about: dict[str, Any]) -> str:
    return f"{name} – {about['about']}"


def _grouped(known: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the options: for each kind a head that cannot be chosen, then its policies."""
    found = {}
    for kind in (PUSH, PULL, PEER, BATCH, CHAIN):
        own = [name for name, each in known.items() if each["kind"] == kind.name]
        if own:
            found[f"{HEAD}{kind.name}"] = f"{kind.name.capitalize()} policies: {kind.sentence}"
        found |= {name: _line(name, known[name]) for name in own}
    return found


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


EXAMPLE = """from gridwright import push


@push
def shortest(task_class, view):
    best, fewest = -1, 1 << 30
    for j in range(len(view.machines)):
        if view.rate[task_class, j] > 0 and view.machines[j].backlog < fewest:
            best, fewest = j, view.machines[j].backlog
    return best
"""
SELECT = """
const field = document.querySelector('textarea[aria-label="Code of a policy"]');
if (field) {
  const before = field.value.split("\\n").slice(0, LINE - 1).join("\\n").length;
  const start = LINE > 1 ? before + 1 : 0;
  const end = field.value.indexOf("\\n", start);
  field.focus();
  field.setSelectionRange(start, end < 0 ? field.value.length : end);
}
"""


class CodeField:
    """A field for code, if the user may run code here."""

    def __init__(self, code: str, trusted: bool, use: str) -> None:
        self.field: ui.textarea | None = None
        with ui.expansion("A policy of your own, as code", value=bool(code)).props("dense") as all_:
            all_.classes("w-full")
            if not trusted:
                ui.label(
                    "To run code, log in with the token that was printed at the start, on this "
                    "computer or through a tunnel (ssh -L):"
                )
                ui.link("log in", "/login")
                return
            ui.label(f"The code runs on this computer with your permissions. {use}").classes(
                "gw-quiet"
            )
            self.field = ui.textarea("Code of a policy", value=code).without_auto_validation()
            self.field.props(f"outlined autogrow spellcheck=false placeholder={json.dumps('…')}")
            self.field.props('input-class="font-mono" input-style="white-space: pre"')
            self.field.classes("w-full max-w-3xl")
            ui.button("An example", on_click=self._show_example).props("flat dense")

    @property
    def text(self) -> str:
        """The code that was typed or pasted."""
        return "" if self.field is None else str(self.field.value or "")

    def show_error(self, error: str) -> bool:
        """Show an error beside the code and select its line; return False if it names no line."""
        if self.field is None:
            return False
        line = line_of(error)
        self.field.error = None
        if line is None:
            return False
        lines = self.text.splitlines()
        words = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        self.field.error = f"line {line}: {error.partition(f'line {line}: ')[2]} ({words})"
        ui.run_javascript(SELECT.replace("LINE", str(line)))
        return True

    def _show_example(self) -> None:
        if self.field is not None and not self.text.strip():
            self.field.value = EXAMPLE
