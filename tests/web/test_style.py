"""The classes that pages give their elements, and the rules of frame.css."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from gridwright.web import pages

FOLDER = Path(pages.__file__).parent
UTILITIES = (FOLDER / "frame.css").read_text().partition("@layer utilities")[2].partition("\n}")[0]
DEFINED = {each.replace("\\", "") for each in re.findall(r"^ +\.(\S+) {", UTILITIES, re.MULTILINE)}
OF_QUASAR = {"no-wrap", "text-negative"}


def used() -> set[str]:
    """Return the classes in what pages give to ``classes``, in constants named there, in props."""
    found: set[str] = set()
    for path in FOLDER.glob("*.py"):
        tree = ast.parse(path.read_text())
        constants = {
            target.id: each.value
            for each in tree.body
            if isinstance(each, ast.Assign)
            for target in each.targets
            if isinstance(target, ast.Name)
        }
        calls = [
            each
            for each in ast.walk(tree)
            if isinstance(each, ast.Call) and getattr(each.func, "attr", "") == "classes"
        ]
        given = [part for each in calls for part in (*each.args, *(k.value for k in each.keywords))]
        given += [
            constants[name.id]
            for part in given
            for name in ast.walk(part)
            if isinstance(name, ast.Name) and name.id in constants
        ]
        for part in given:
            found.update(*(text.split() for text in texts(part)))
        for text in texts(tree):
            found.update(*(each.split() for each in re.findall(r'(?<!:)\bclass="([^"]*)"', text)))
    return found


def texts(tree: ast.AST) -> Iterator[str]:
    """Return the texts in a program."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def test_every_class_has_a_rule_and_every_rule_is_used() -> None:
    classes = {each for each in used() if not each.startswith("gw-") and each != "gw"}
    assert classes - OF_QUASAR == DEFINED
