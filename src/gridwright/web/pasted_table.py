"""A table pasted from a spreadsheet: its names, decimal signs, thousands and units.

What the text makes clear is not asked. What it leaves open is a question, with the likeliest answer
first: whether a comma is a decimal sign, whether numbers with a unit of time are times or rates,
and how long a time unit of the system is.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from types import MappingProxyType
from typing import NamedTuple

from ..model import InputError

LONGEST_TEXT = 500_000
"""Characters of a file, or of a table."""
SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
WRITTEN = {
    "ms": "ms msec millisecond milliseconds",
    "s": "s sec secs second seconds hz",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "d": "d day days",
}
"""How units of time are written."""
UNITS = {word: unit for unit, words in WRITTEN.items() for word in words.split()}
HEADS = {
    **dict.fromkeys(("arrivals", "arrival", "arr", "arr."), "arrivals"),
    **dict.fromkeys(("arrival rate", "arrival rates", "lambda", "λ"), "arrivals"),
    **dict.fromkeys(("how many", "count", "counts"), "counts"),
    "availability": "availability",
}
"""Heads of columns and rows that are not machines and classes."""
CORNERS = (
    "class",
    "classes",
    "task class",
    "machine",
    "machines",
    "name",
    "names",
    "rate",
    "rates",
)
"""Texts in the corner of a table that has names in its first row and its first column."""
NUMBER = re.compile(r"([+-]?(?:\d(?:[\d.,]*\d)?|[.,]\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.DOTALL)
PER = re.compile(r"(?:\d|\w+)?\s*(?:/|per\s)\s*(\w+)|(\w+)\s*(?:\^-1|⁻¹)|(hz)")
BRACKETS = re.compile(r"(.*?)\s*[\[(]([^\])]*)[\])]")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
NO_ANSWERS: Mapping[str, str] = MappingProxyType({})


class Question(NamedTuple):
    """What a text leaves open, and the answers; the first is the likeliest."""

    key: str
    words: str
    answers: Mapping[str, str]

    def answer(self, given: Mapping[str, str]) -> str:
        """Return the given answer, or the likeliest."""
        found = given.get(self.key, "")
        return found if found in self.answers else next(iter(self.answers))


class Unit(NamedTuple):
    """What stands behind a number: a ``rate``, a ``time``, a ``share`` in percent, or nothing."""

    kind: str = ""
    name: str = ""


@dataclass
class Pasted:
    """The parts of a table; a list is empty if the table has no such part."""

    rates: list[list[str]]
    classes: list[str] = field(default_factory=list)
    machines: list[str] = field(default_factory=list)
    arrivals: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    availability: list[str] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    """The row of the table that each class comes from."""
    questions: tuple[Question, ...] = ()

    def words(self) -> str:
        """Say in a line what was understood."""
        rows, columns = len(self.rates), len(self.rates[0])
        first = ", ".join(self.rates[0][:8]) + (" …" if columns > 8 else "")
        found = f"rates of {rows} class{'' if rows == 1 else 'es'}"
        found += f" on {columns} machine{'' if columns == 1 else 's'}"
        for what in ("classes", "machines"):
            if names := getattr(self, what):
                found += f", {what} {', '.join(names[:4])}{' …' if len(names) > 4 else ''}"
        more = [key for key in ("arrivals", "counts", "availability") if getattr(self, key)]
        return f"{found}{''.join(f', {key}' for key in more)}; the first row: {first}"


def read_table(text: str, name: str, answers: Mapping[str, str] = NO_ANSWERS) -> Pasted:
    r"""Read a table; tabs, semicolons, commas or spaces stand between its cells.

    >>> found = read_table("\tsmall\tlarge\nquick\t2,5\t3\nslow\t4\t1", "the table")
    >>> found.classes, found.machines, found.rates
    (['quick', 'slow'], ['small', 'large'], [['2.5', '3'], ['4', '1']])
    """
    if len(text) > LONGEST_TEXT:
        raise InputError(f"{name}: {len(text):,} characters; expected at most {LONGEST_TEXT:,}")
    mark, asked = _separator(text, answers)
    numbered = [
        (number, [word.strip() for word in (_words(line, mark))])
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not numbered:
        raise InputError(f"{name}: no rates in it; expected a row for each class: 2.2, 7, 10.25")
    first, width = numbered[0][0], len(numbered[0][1])
    for number, row in numbered:
        if len(row) != width:
            where = f"{name}, line {number}: {len(row)} rates; expected {width}"
            raise InputError(f"{where}, as line {first}")
    found = read_cells([row for _, row in numbered], answers)
    found.questions = (*asked, *found.questions)
    for source, rates in zip(found.sources, found.rates, strict=True):
        for j, rate in enumerate(rates, start=1):
            if not 0 <= as_float(rate) < inf:
                where = f"{name}, line {numbered[source][0]}: rate {j}"
                raise InputError(f"{where} is {rate[:40]!r}; expected a number, 0 or more")
    return found


def as_float(text: str) -> float:
    """Return a number; NaN if the text is not one."""
    try:
        return float(text)
    except ValueError:
        return nan


def _words(line: str, mark: str) -> list[str]:
    if mark == " ":
        return line.split()
    return next(csv.reader([line], delimiter=mark, skipinitialspace=True)) if line else [""]


def _separator(text: str, answers: Mapping[str, str]) -> tuple[str, tuple[Question, ...]]:
    """Return what stands between the cells."""
    for mark in "\t;":
        if mark in text:
            return mark, ()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    words = [line.split() for line in lines]
    if all(len(each) > 1 and all(_number(word) for word in each) for each in words):
        return " ", ()
    if lines and all(re.fullmatch(r"\d+,\d+", line) for line in lines):
        columns = {"columns": "it separates two machines", "decimal": "it is the decimal sign"}
        asked = Question("separator", f"The comma in {lines[0]}", columns)
        return ("," if asked.answer(answers) == "columns" else "\t"), (asked,)
    return ",", ()


def read_block(text: str) -> list[list[str]]:
    """Split a block of cells as a spreadsheet copies it; missing cells are empty."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n").split("\n")
    rows = [[word.strip() for word in _words(line, "\t")] for line in lines]
    width = max(map(len, rows))
    return [[*row, *[""] * (width - len(row))] for row in rows]


def read_cells(rows: Sequence[Sequence[str]], answers: Mapping[str, str] = NO_ANSWERS) -> Pasted:
    """Tell names, arrivals, counts and availability from rates, and read the numbers."""
    top, left, asked = _heads(rows, answers)
    corner = rows[0][0] if top and left else ""
    whole = _named(corner, Unit("time" if "time" in corner.casefold() else ""))[1]
    columns = [_named(word, whole) for word in rows[0]] if top else [("", whole)] * len(rows[0])
    body = [(row[0] if left else "", row[left:]) for row in rows[top:]]
    columns = columns[left:]
    pairs = [pair for _, cells in body for pair in zip(cells, columns, strict=True)]
    read = [(_number(word), head) for word, (_, head) in pairs]
    known = [(n[0], n[1] if n[1].kind else head) for n, head in read if n]
    numbers = _Numbers(known, answers)
    found = Pasted([], questions=(*asked, *numbers.questions))
    kinds = [HEADS.get(name.casefold(), "rates") for name, _ in columns]
    found.machines = [
        n for (n, _), kind in zip(columns, kinds, strict=True) if kind == "rates" and top
    ]
    for source, (head, cells) in enumerate(body, start=top):
        texts = [numbers.read(word, unit) for word, (_, unit) in zip(cells, columns, strict=True)]
        rates = [text for text, kind in zip(texts, kinds, strict=True) if kind == "rates"]
        if own := HEADS.get(head.casefold()):
            setattr(found, own, rates)
            continue
        found.rates.append(rates)
        found.sources.append(source)
        found.classes += [head] if left else []
        for text, kind in zip(texts, kinds, strict=True):
            if kind != "rates":
                getattr(found, kind).append(text)
    if not found.rates or not found.rates[0]:
        raise InputError("the table has no rates; expected a row for each class")
    return found


def _heads(
    rows: Sequence[Sequence[str]], answers: Mapping[str, str]
) -> tuple[int, int, tuple[Question, ...]]:
    """Return 1 or 0 for the first row and for the first column: whether they have names."""
    corner, tall, wide = rows[0][0].casefold(), len(rows) > 1, len(rows[0]) > 1
    above = rows[0][1:] if wide else rows[0]
    beside = [row[0] for row in rows[1:]] if tall else rows[0][:1]
    top = tall and any(above) and not any(map(_number, above))
    left = wide and all(beside) and not any(map(_number, beside))
    known = _named(corner, Unit())[0] in CORNERS or "time" in corner
    if tall and wide and (known or (not corner and (top or left))):
        return 1, 1, ()
    if tall and wide and not corner and all(above) and all(beside):
        both = {"names": "names", "numbers": "numbers"}
        asked = Question("heads", "The first row and the first column are", both)
        named = int(asked.answer(answers) == "names")
        return named, named, (asked,)
    return int(top), int(left), ()


def _named(word: str, whole: Unit) -> tuple[str, Unit]:
    """Return a head without the unit in brackets behind it, and that unit."""
    found = BRACKETS.fullmatch(word)
    unit = _unit(found[2]) if found else None
    return (found[1], unit) if found and unit else (word, whole)


def _unit(text: str) -> Unit | None:
    """Read a unit; None if it is not one.

    >>> _unit("tasks/min"), _unit("ms"), _unit("%"), _unit("x")
    (Unit(kind='rate', name='min'), Unit(kind='time', name='ms'), Unit(kind='share', name=''), None)
    """
    word = text.strip().casefold().rstrip(".")
    if word in ("", "%"):
        return Unit("share" if word else "")
    found = PER.fullmatch(word)
    if found:
        unit = UNITS.get(next(part for part in found.groups() if part))
        return Unit("rate", unit) if unit else None
    return Unit("time", UNITS[word]) if word in UNITS else None


def _number(text: str) -> tuple[str, Unit] | None:
    """Return the digits and the unit of a cell; None if it is not a number."""
    found = NUMBER.fullmatch(re.sub("(?<=\\d)['’\u00a0\u202f](?=\\d)", "", text))
    unit = _unit(found[2]) if found else None
    return (found[1], unit) if found and unit else None


class _Numbers:
    """How the numbers of a table are written."""

    def __init__(self, found: Sequence[tuple[str, Unit]], answers: Mapping[str, str]) -> None:
        signs = list(_sign_questions([digits for digits, _ in found]))
        self._thousands = [q.key for q in signs if q.answer(answers) == "thousands"]
        units = Counter(unit for _, unit in found if unit.kind in ("rate", "time"))
        asked = list(_unit_questions(units))
        given = {each.key: each.answer(answers) for each in asked}
        self._seconds = SECONDS[given.get("unit", "s")]
        self._times = given.get("meaning", "times") == "times"
        self.questions = tuple(each for each in (*signs, *asked) if len(each.answers) > 1)

    def read(self, word: str, head: Unit) -> str:
        """Return a cell as a plain number per time unit; a cell that is not a number stays."""
        found = _number(word)
        if found is None:
            return word
        digits, unit = found
        for sign in ",.":
            if sign in self._thousands:
                digits = digits.replace(sign, "")
        digits = digits.replace(",", ".")
        unit = unit if unit.kind else head
        try:
            value = float(digits)
        except ValueError:
            return word
        if unit.kind == "share":
            return f"{value / 100:.10g}"
        if not unit.kind or (unit.kind == "time" and not unit.name and not self._times):
            return digits
        units = self._seconds / SECONDS[unit.name] if unit.name else 1.0
        if unit.kind == "rate" or not self._times:
            return f"{value * units:.10g}"
        return f"{units / value:.10g}" if value else word


def _sign_questions(numbers: Sequence[str]) -> Iterator[Question]:
    """Ask what commas and points mean; a question with one answer is already decided."""
    proofs: dict[tuple[str, str], str] = {}
    unclear: dict[str, str] = {}
    for digits in (each.lower().partition("e")[0] for each in numbers):
        counts = {sign: digits.count(sign) for sign in ",." if sign in digits}
        last = max(counts, key=digits.rfind, default="")
        for sign, count in counts.items():
            if count > 1 or (len(counts) > 1 and sign != last):
                proofs.setdefault((sign, "thousands"), digits)
            elif len(counts) > 1 or not THOUSANDS.fullmatch(digits):
                proofs.setdefault((sign, "decimal"), digits)
            else:
                unclear.setdefault(sign, digits)
    for sign, other in ((",", "."), (".", ",")):
        proved = [way for way in ("decimal", "thousands") if (sign, way) in proofs]
        if len(proved) > 1:
            one, two = (proofs[sign, way] for way in proved)
            raise InputError(
                f"{sign!r} is the decimal sign in {one!r}, but separates thousands in {two!r}"
            )
        if proved:
            yield Question(sign, "", {proved[0]: ""})
        elif sign in unclear and (sign == "," or (other, "decimal") in proofs):
            shown = unclear[sign]
            values = {
                "decimal": f"{shown.replace(',', '.')}: a decimal sign",
                "thousands": f"{shown.replace(sign, '')}: it separates thousands",
            }
            likely = ["thousands", "decimal"] if (other, "decimal") in proofs else [*values]
            yield Question(sign, f"{shown} is", {way: values[way] for way in likely})


def _unit_questions(units: Counter[Unit]) -> Iterator[Question]:
    """Ask what numbers with units of time mean for the system."""
    if not units:
        return
    if any(unit.kind == "time" for unit in units):
        answers = {"times": "times for a task; its rate is 1 / time", "rates": "rates"}
        yield Question("meaning", "The numbers with a unit of time are", answers)
    if named := [unit.name for unit, _ in units.most_common() if unit.name]:
        order = dict.fromkeys([*named, *SECONDS])
        yield Question("unit", "One time unit of the system is", {u: f"1 {u}" for u in order})
