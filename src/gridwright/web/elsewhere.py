"""The same simulation elsewhere: as a Python script, and as a command line."""

import re
import shlex
from pprint import pformat
from typing import Any

from .documents import system_of
from .findings import Document

CODE = "my_policies.py"
"""The file of pasted policies that the command line reads, and writes before."""


def as_python(document: Document) -> str:
    """Return a script that simulates the same."""
    wanted, parts = document["wanted"], []
    if wanted["code"].strip():
        parts.append(wanted["code"].strip() + "\n\n")
    parts.append("import gridwright as gw\n")
    system = repr(wanted["system"])
    if not isinstance(wanted["system"], str):
        parts.append(f"system = gw.System(**{pformat(wanted['system'], sort_dicts=False)})\n")
        system = "system"
    named = list(map(repr, wanted["policies"]))
    policies = [*named, *_pasted(document)]
    several = len(policies) > 1
    what = f"[{', '.join(policies)}]" if several else policies[0]
    options = "".join(f"    {key}={value!r},\n" for key, value in _options(document).items())
    call = "compare" if several else "simulate"
    parts.append(f"found = gw.{call}(\n    {system},\n    {what},\n{options})")
    parts.append(f"for result in {'found.results' if several else '[found]'}:\n    print(result)")
    if document["tails"]:
        parts.append('    print("    p95:", result.figures["p95"], " p99:", result.figures["p99"])')
    if several:
        parts.append("for difference in found.ranked_differences:\n    print(difference.sentence)")
        parts.append('print(*found.conclusions, sep="\\n")')
    return "\n".join(parts) + "\n"


def as_command(document: Document) -> str:
    """Return a command line that simulates the same; it writes the files that it needs."""
    wanted, parts = document["wanted"], []
    system = wanted["system"]
    if not isinstance(system, str):
        made = system_of(system)
        system = f"{re.sub('[^a-z0-9]+', '-', made.name.lower()).strip('-') or 'system'}.toml"
        parts.append(_file(system, made.to_toml()))
    policies = [*wanted["policies"]]
    if wanted["code"].strip():
        parts.append(_file(CODE, wanted["code"]))
        policies += [f"{CODE}:{name}" for name in _pasted(document)]
    verb, option = ("compare", "--policies") if len(policies) > 1 else ("simulate", "--policy")
    words = ["gridwright", verb, system, option, ",".join(policies)]
    for key, value in _options(document).items():
        words += [f"--{key}"] if value is True else [f"--{key}", f"{value:.17g}"]
    parts.append(shlex.join(words))
    return "\n".join(parts) + "\n"


def _options(document: Document) -> dict[str, Any]:
    """Return the options that are not the default everywhere."""
    wanted = document["wanted"]
    found = {"horizon": document["horizon"], "replications": wanted["replications"]}
    found |= {"seed": wanted["seed"]}
    if wanted["warmup"]:
        found["warmup"] = wanted["warmup"]
    return found | ({"tails": True} if document["tails"] else {})


def _pasted(document: Document) -> list[str]:
    """Return the names of the policies that the code defines."""
    every = [each["policy"] for each in document["policies"]]
    return every[len(document["wanted"]["policies"]) :]


def _file(name: str, text: str) -> str:
    """Return the lines of a shell that write a file."""
    end = "END"
    while end in text.splitlines():
        end += "_"
    words = f"# This writes the file {name}, which the command below reads."
    return f"{words}\ncat > {name} <<'{end}'\n{text.rstrip()}\n{end}"
