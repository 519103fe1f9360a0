"""A field for a policy of one's own, pasted as code; what is wrong is told at its line."""

from __future__ import annotations

import json

from nicegui import ui

from ..pasted import line_of

__all__ = ["CodeField"]

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
    """Room for code, where code is taken at all."""

    def __init__(self, code: str, trusted: bool) -> None:
        self.field: ui.textarea | None = None
        with ui.expansion("A policy of your own, as code", value=bool(code)).props("dense") as all_:
            all_.classes("w-full")
            if not trusted:
                ui.label(
                    "Code runs only for who sits at the computer that runs it, or comes through a "
                    "tunnel (ssh -L), and has shown the token that was printed at the start:"
                )
                ui.link("log in", "/login")
                return
            ui.label(
                "It runs on this computer, with all that you may do there. Every function with "
                "@push or @pull is simulated beside the policies above."
            ).classes("gw-quiet")
            self.field = ui.textarea("Code of a policy", value=code).without_auto_validation()
            self.field.props(f"outlined autogrow spellcheck=false placeholder={json.dumps('…')}")
            self.field.props('input-class="font-mono" input-style="white-space: pre"')
            self.field.classes("w-full max-w-3xl")
            ui.button("An example", on_click=self._show_example).props("flat dense")

    @property
    def text(self) -> str:
        """What was pasted."""
        return "" if self.field is None else str(self.field.value or "")

    def show_error(self, error: str) -> bool:
        """Show an error at its line, which is selected; False: it is about no line."""
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
