"""A form for policies: which, and a field for each parameter that their functions declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import ui

from ...model import InputError
from ...policies import find, policies
from ..api.policies import describe_policy

__all__ = ["PolicyForm"]


class PolicyForm:
    """Policies to choose from, and a field for every parameter of those that are chosen."""

    def __init__(self, first: list[str], kinds: tuple[str, ...] = (), *, several: bool = True):
        known = [each for each in policies().values() if each.is_shipped]
        self.known = {
            each.name: describe_policy(each) for each in known if not kinds or each.kind in kinds
        }
        self.fields: dict[tuple[str, str], Any] = {}
        options = {name: f"{name} – {each['about']}" for name, each in self.known.items()}
        self.chosen = ui.select(
            options,
            label="Policies" if several else "Policy",
            multiple=several,
            value=first if several else first[0],
            with_input=True,
            on_change=self._lay_out,
        ).classes("w-full max-w-3xl")
        if several:
            self.chosen.props("use-chips")
        self.place = ui.column().classes("gap-1")
        self._lay_out()

    def names(self) -> list[str]:
        """Return the policies with those of their parameters that are not as they were."""
        return [self._named(name) for name in self._chosen()]

    def choose(self, policy: str) -> None:
        """Choose one policy with its parameters; none where it is not one of these."""
        name, *words = policy.split(":")
        if name not in self.known:
            self.chosen.value = [] if isinstance(self.chosen.value, list) else None
            return
        self.chosen.value = [name] if isinstance(self.chosen.value, list) else name
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
                    for parameter in parameters:
                        key = name, parameter["name"]
                        self.fields[key] = _field(name, parameter, self._check(name))

    def _check(self, name: str) -> Callable[[], str | None]:
        def check() -> str | None:
            try:
                find(self._named(name))
            except InputError as error:
                return str(error)
            return None

        return check


def _field(policy: str, parameter: dict[str, Any], check: Callable[[], str | None]) -> Any:
    key, kind, default = parameter["name"], parameter["kind"], parameter["default"]
    if kind == "choice":
        return ui.select(parameter["choices"], label=key, value=default).classes("w-40")
    if kind == "boolean":
        return ui.switch(key, value=default == "true")

    def changed(event: Any) -> None:
        event.sender.error = check()

    made = ui.input(key, value=default, on_change=changed).classes("w-40").without_auto_validation()
    return made.props(f'dense debounce=250 aria-label="{key} of {policy}"')


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
