"""Old names of commands and options work for one release, and name the new ones."""

from pathlib import Path

import pytest

from gridwright.cli.main import run
from gridwright.cli.old_spellings import MOVED, translate


def errors(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    status = run(list(arguments))
    return status, capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_old_commands_work_and_warn(old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([old, "--help"]) == 0
    out, err = capsys.readouterr()
    assert f"Usage: gridwright {new} " in out
    assert err.count("\n") == 1
    assert f"'gridwright {old}' is now 'gridwright {new}'" in err


@pytest.mark.parametrize(
    ("arguments", "new", "message"),
    [
        (["99"], "runs replay", "there is no run 99"),
        (["--policy", "mct", "nothing"], "runs replay", "no run 'nothing'"),
        (["--policy", "mct", "none.swf.gz"], "traces replay", "there is no such file"),
    ],
)
def test_the_old_replay_is_of_runs_or_of_traces(
    arguments: list[str],
    new: str,
    message: str,
    own_home: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, (warning, error) = errors(capsys, "replay", *arguments)
    assert status == 2
    assert f"is now 'gridwright {new}'" in warning
    assert message in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--executor", "dask"], "needs the address of a scheduler: --on tcp://"),
        (["--executor", "slurm"], "expected 'local' or 'dask'"),
        (["--executor", "local", "--address", "tcp://h:1"], "for --executor dask"),
        (["--address", "nowhere"], "'nowhere' is not the address of a cluster"),
        (["--executor", "dask", "--address", "nowhere"], "'nowhere' is not the address of"),
    ],
)
def test_old_options_work_and_warn(
    options: list[str], message: str, own_home: None, capsys: pytest.CaptureFixture[str]
) -> None:
    status, (*warnings, error) = errors(capsys, "run", "MGST-1", *options)
    assert status == 2
    assert len(warnings) == len(options) / 2
    assert all("is now --on" in warning for warning in warnings)
    assert message in error


def test_old_options_are_not_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["run"], ["runs", "replay"], ["traces", "replay"], ["dask", "workers"]):
        assert run([*command, "--help"]) == 0
        text = capsys.readouterr().out
        assert "--on" in text
        assert not {"--executor", "--address", "--connect"} & set(text.split())


@pytest.mark.parametrize(
    ("words", "group"),
    [
        (["7", "--policy", "mine.py"], "runs"),
        (["--policy", "mine.py", "7"], "runs"),
        (["mine.txt", "--seed", "7"], "traces"),
        (["--json", "mine.txt"], "traces"),
        (["elsewhere.swf.gz"], "traces"),
        (["x" * 5000], "runs"),
    ],
)
def test_the_old_replay_tells_runs_from_traces(
    words: list[str], group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine.py", "mine.txt"):
        Path(name).write_text("text")
    assert translate(["replay", *words]) == [group, "replay", *words]
