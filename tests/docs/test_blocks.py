"""Every code block of README and docs is run, and shows what it really prints.

- ``toml`` and ``python`` blocks with a title are files in the page's folder;
- ``console`` blocks: the lines after ``$ command`` are its output, where a lone or trailing ``…``
  stands for anything; a command that needs no shell runs in this process, because a new one takes
  more than a second until it has imported everything;
- ``python`` blocks without a title are sessions, checked as doctests;
- ``sh`` blocks hold ``make`` commands, whose targets must exist.

A page with ``<!-- needs traces -->`` is skipped, visibly, where the archives' traces are not in
``../shared/traces``; where they are, its blocks find them in ``traces``.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from gridwright.cli.main import run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


ARCHIVES = ROOT.parent / "shared" / "traces"
NEEDS = "<!-- needs traces -->"
PROGRESS = re.compile(r"gridwright: .+: \d+ %.*")
"""A line a minute in place of a progress bar: whether one comes depends on the computer."""
PLAIN = re.compile(r"gridwright [^|&;<>()$`*?~#\\\n]+")
"""A command that a shell only splits into words."""


class Block(NamedTuple):
    language: str
    title: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, _, rest = match["info"].partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(language, title[1] if title else "", match["text"], line))
    return found


@pytest.fixture
def nothing_stays_behind(tmp_path: Path) -> Iterator[None]:
    """End what a page that fails half-way has started and not ended."""
    yield
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and Path(process.cwd()).is_relative_to(tmp_path):
                process.kill()


@pytest.mark.slow
@pytest.mark.timeout(600)  # a page may have many programs, and each may compile
@pytest.mark.usefixtures("nothing_stays_behind")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_runs(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    bin_folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    if NEEDS in page.read_text("utf-8"):
        if not ARCHIVES.is_dir():
            pytest.skip("the archives' traces are not in ../shared/traces")
        (tmp_path / "traces").symlink_to(ARCHIVES)
    session: dict[str, object] = {}
    for block in blocks(page):
        where = f"{page.name}, line {block.line}"
        if block.title:
            (tmp_path / block.title).write_text(block.text, "utf-8")
        elif block.language == "console":
            run_console(block.text, where, capfd)
        elif block.language == "python":
            run_session(block, session, where)
        elif block.language == "sh":
            check_targets(block.text, where)
        else:
            raise AssertionError(f"{where}: a {block.language or 'nameless'} block is not run")


def run_console(text: str, where: str, capfd: pytest.CaptureFixture[str]) -> None:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        printed = run_here(command, capfd) if PLAIN.fullmatch(command) else run_in_shell(command)
        told = [line.rstrip() for line in printed.splitlines()]
        shown = "".join(f"{line}\n" for line in told if not PROGRESS.fullmatch(line))
        pattern = "".join(map(line_pattern, expected.rstrip().splitlines()))
        assert re.fullmatch(pattern, shown), f"{where}: $ {command}\n{shown}"


def run_here(command: str, capfd: pytest.CaptureFixture[str]) -> str:
    capfd.readouterr()
    run(shlex.split(command)[1:])
    return "".join(capfd.readouterr())


def run_in_shell(command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=dict(os.environ),  # and not what a library has put beside it
    )
    return done.stdout + done.stderr


def line_pattern(line: str) -> str:
    if line == "…":
        return r"(?:.*\n)*?"
    start, dots, rest = line.partition("…")
    return (
        re.escape(start if dots and not rest else line)
        + (".*" if dots and not rest else "")
        + r"\n"
    )


def run_session(block: Block, session: dict[str, object], where: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest(block.text, session, where, where, block.line)
    assert test.examples, f"{where}: a python block without a title is a session with >>>"
    messages: list[str] = []
    runner = doctest.DocTestRunner(optionflags=flags)
    failed, _ = runner.run(test, out=messages.append, clear_globs=False)
    session.update(test.globs)
    assert not failed, "".join(messages)


def check_targets(text: str, where: str) -> None:
    for line in text.splitlines():
        command = line.partition("#")[0].split()
        assert command[0] == "make", f"{where}: {line}"
        subprocess.run(
            ["make", "-n", "-C", str(ROOT), *command[1:]], check=True, capture_output=True
        )


def test_the_check_finds_blocks() -> None:
    assert sum(len(blocks(page)) for page in PAGES) > 25
