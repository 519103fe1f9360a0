"""Experiment files: what may stand in one, and what is said of one that is wrong."""

from pathlib import Path
from typing import Any

import pytest

from gridwright import InputError, load
from gridwright.catalogue import experiment_names
from gridwright.testbed import Experiment


@pytest.mark.parametrize("name", [name for name in experiment_names() if "MGST" in name])
def test_the_catalogue_has_every_published_experiment(name: str) -> None:
    experiment = Experiment.find(name)
    number = int(name.split("-")[1])
    assert len(experiment.system.machines) == (6 if number < 5 else 21)
    assert not any(experiment.corrections.parts()[each] for each in ("rates", "arrivals"))
    assert (experiment.system.failures is not None) == (number in (3, 4, 11, 12))
    published = load(experiment.system.name.removesuffix(":modulo"))
    assert sorted(experiment.system.effective.T.tolist()) == sorted(published.effective.T.tolist())
    assert experiment.system.arrival_rates.tolist() == published.arrival_rates.tolist()


def test_only_system_and_policy_are_needed(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('policy = "fcfs"\n[system]\narrivals = [1]\nrates = [[2, 3]]\n')
    found = Experiment.from_file(path)
    assert (found.name, found.time_unit, found.timeout, found.executor) == ("mine", 1, 0, "local")
    assert found.corrections.rates
    assert found.failures == "generated"
    assert found.machine_names() == ["1", "2"]


def test_files_beside_it_are_found(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text('name = "two"\narrivals = [1]\nrates = [[2, 3]]\n')
    (tmp_path / "jobs.csv").write_text("time,class,work\n0.5,1,2\n")
    (tmp_path / "faults.csv").write_text("machine,start,end\n2,1,2\n")
    (tmp_path / "list.srs").write_text("a.example; secret; 0.5; 100\nb.example; ; 1; 100\n")
    path = tmp_path / "mine.toml"
    path.write_text(
        'system = "two.toml"\npolicy = "fcfs"\njobs = "jobs.csv"\nfailures = "faults.csv"\n'
        'machines = "list.srs"\n'
    )
    found = Experiment.from_file(path)
    assert found.job_list().works.tolist() == [2]
    assert found.faults()[0].machine == 1
    assert found.machine_names() == ["a.example", "b.example"]
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ('polices = "fcfs"', "polices"),
        ("time_unit = 0", "time_unit"),
        ('job = "sleep"', "job"),
        ('on_timeout = "pray"', "on_timeout"),
        ('detection = "timeout"', "no failure would be seen"),
        ('executor = "dask"', "needs the address of a scheduler"),
        ("corrections = 3", "corrections"),
        ("corrections = { rate_treshold = 0.1 }", "rate_treshold"),
        ("seed = -1", "seed"),
        ("duration = inf", "duration"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(line: str, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    policy = "" if line.startswith("polic") else 'policy = "fcfs"\n'
    path.write_text(f'system = "2.B"\n{policy}{line}\n')
    with pytest.raises(InputError) as caught:
        Experiment.from_file(path)
    assert "wrong.toml: " in str(caught.value)
    assert wrong in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ({"system": "4.A", "policy": "mm"}, "mm is a batch policy"),
        ({"system": "2.B", "policy": "lpas_dec"}, "2.B has no arrivals at machines"),
        ({"system": "4.A", "policy": "lpas"}, "lpas is a push policy"),
        ({"system": "4.A", "policy": "mct_dec", "on": "tcp://a:1"}, "run on this computer"),
        ({"system": "4.A", "policy": "mct_dec", "timeout": 3}, "timeout is not 0"),
        ({"system": "Wisnesky:text:4", "policy": "fcfs"}, "fcfs is a pull policy"),
        ({"system": "Smith", "policy": "fcfs"}, "fcfs is a pull policy"),
        ({"system": "3.G1:alpha1:1", "policy": "fcfs"}, "availabilities that stay the same"),
        ({"system": "MGST-7-as-run:fcfs", "policy": "fcfs"}, r"has \[delays\]"),
        ({"system": "2.Z", "policy": "fcfs"}, "2.Z"),
        ({"system": "2.B", "policy": "fcsf"}, "fcsf"),
    ],
)
def test_what_cannot_be_run_is_refused(parts: dict[str, str], wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        Experiment(**parts)


def test_machines_must_be_as_many_as_the_system_has() -> None:
    experiment = Experiment(system="2.B", policy="fcfs", machines=["a", "b", "c"])
    with pytest.raises(InputError, match="3 machines for a system of 2"):
        experiment.machine_names()


def test_an_experiment_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no experiment 'MGST-13'"):
        Experiment.find("MGST-13")
    with pytest.raises(InputError, match=r"no\.toml: there is no such file"):
        Experiment.find("no.toml")


def test_one_file_says_it_all(tmp_path: Path) -> None:
    """A trace, speeds and predictions by machine stand in the experiment file with its system."""
    made = Experiment(
        system="2.B",
        policy="kpb:k=1",
        time_unit=0.5,
        seed=2**40,
        job="spin",
        iterations=[500, 700],
        calibrations=[{"iterations": 500, "seconds": 0.1}] * 2,
        failures=[["2", 3.5, 4], ["1", 1, 2]],
        resolution=1,
        prediction=["weekly", {"mode": "fixed", "availability": 0.5, "period": float("inf")}],
        corrections={"overhead": False, "every_time": None},
    )
    file = tmp_path / "mine.toml"
    file.write_text(made.to_toml())
    again = Experiment.from_file(file)
    assert again == made.replace(name="mine")
    assert [fault.start for fault in again.faults()] == [1, 3.5]
    assert again.known_speeds() == made.calibrations


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"failures": [["1", 1, -2]]}, "failures, row 1, column 3 is -2; expected a number > 0"),
        ({"failures": [["9", 1, 2]]}, "failures, entry 1: no machine '9'"),
        ({"prediction": ["weekly"]}, "1 predictions for 2 machines"),
        ({"calibrations": [{"iterations": 1, "seconds": 1}]}, "1 calibrations for 2 machines"),
    ],
)
def test_what_is_said_of_each_machine_must_fit(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Experiment(system="2.B", policy="mct", **wrong)


@pytest.mark.parametrize(
    ("words", "changes", "on"),
    [
        ('executor = "dask"\naddress = "tcp://a:1"', {"on": ""}, ""),
        ('executor = "local"', {"on": "tcp://b:2"}, "tcp://b:2"),
        ('executor = "local"\naddress = "tcp://a:1"', {}, ""),
        ('on = "tcp://a:1"', {"executor": "local"}, ""),
        ('on = "tcp://a:1"', {"address": "tcp://b:2"}, "tcp://b:2"),
    ],
)
def test_changes_replace_old_keys_of_a_file(
    words: str, changes: dict[str, str], on: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'system = "2.B"\npolicy = "fcfs"\nduration = 10\n{words}\n')
    with pytest.warns(FutureWarning, match="keywords executor and address of an experiment"):
        assert Experiment.from_file(file, **changes).on == on


def test_an_experiment_leaves_a_time_out_to_its_policy(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from gridwright import pull\n\n"
        '@pull(on_timeout="duplicate")\n'
        "def mine(machine, view):\n"
        "    return 0 if view.classes[0].waiting > 0 else -1\n"
    )
    words = {"system": "MGST.HiHi:1", "policy": str(tmp_path / "mine.py"), "timeout": 3}
    assert Experiment(**words).settings().on_timeout == "duplicate"
    assert Experiment(**words, on_timeout="wait").settings().on_timeout == "wait"
    assert Experiment(**{**words, "policy": "fcfs"}).settings().on_timeout == "resubmit"
