"""Convert the published systems and results into the catalogue that the package ships.

    python tools/convert_published.py [--to FOLDER]

reads ``published/systems.toml`` and ``published/results.toml`` and writes, in the catalogue's
folder, ``sources.toml``, ``systems/NAME.toml`` (one file a published system, its cases inside)
and ``results.jsonl`` (one printed cell a line). ``published/as_run.toml`` becomes
``systems/MGST-n-as-run.toml``. Where a source contradicts its own results, the
system holds the values that fit the results, and a note tells what is printed.

The files must not depend on the processor. Processors agree on +, -, *, / and square roots to the
last bit, but not on the gamma function or on linear algebra, so these are written with 12 digits.
"""

import argparse
import json
import tomllib
from collections.abc import Iterator
from math import gamma
from pathlib import Path
from typing import Any

import numpy as np

from gridwright.model import MarkovChain
from gridwright.model.toml import format_toml

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = ROOT / "published"
CATALOGUE = ROOT / "src" / "gridwright" / "catalogue"

POWERS_SEED = 2009
"""Seed of the machine powers of 3.G2, which the source draws at random and does not print."""

CHAINS_NOTE = (
    "inferred from the printed numbers, which the text contradicts: a body has 1,000 ticks, not "
    "10,000, and at most one job arrives in a tick; the text's own setting is Wisnesky:text"
)

Table = dict[str, Any]


def main() -> None:
    """Write the catalogue."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=CATALOGUE, metavar="FOLDER")
    folder: Path = parser.parse_args().to
    data = tomllib.loads((PUBLISHED / "systems.toml").read_text("utf-8"))
    results = tomllib.loads((PUBLISHED / "results.toml").read_text("utf-8"))
    (folder / "systems").mkdir(parents=True, exist_ok=True)
    for name, printed in data["system"].items():
        text = format_toml(entry(name, dict(printed), data))
        (folder / "systems" / f"{name}.toml").write_text(text, "utf-8")
    facts = tomllib.loads((PUBLISHED / "as_run.toml").read_text("utf-8"))
    for number, table in as_run(data["system"], results["cell"], facts):
        (folder / "systems" / f"MGST-{number}-as-run.toml").write_text(format_toml(table), "utf-8")
    (folder / "sources.toml").write_text(format_toml(data["source"]), "utf-8")
    lines = [json.dumps(cell, ensure_ascii=False) + "\n" for cell in results["cell"]]
    (folder / "results.jsonl").write_text("".join(lines), "utf-8")
    (folder / "tables.toml").write_text(format_toml(_tables(results)), "utf-8")
    for name in ("remarks.toml", "errata.toml"):
        (folder / name).write_text((PUBLISHED / name).read_text("utf-8"), "utf-8")


def as_run(systems: Table, cells: list[Table], facts: Table) -> Iterator[tuple[int, Table]]:
    """Give every experiment of MGST as its testbed ran, a case for each policy."""
    for name in ("MGST.HiHi", "MGST.LoHi", "MGST.HiLo", "MGST.LoLo"):
        for experiment in systems[name]["experiment"]:
            yield experiment["n"], _as_run(name, systems[name], experiment, cells, facts)


def _as_run(
    name: str, printed: Table, experiment: Table, cells: list[Table], facts: Table
) -> Table:
    number = experiment["n"]
    shares = _shares_of_testbed(printed, experiment)
    rates = printed.get("mu") or [row * 3 for row in printed["group_mu"]]
    if len(shares) == 6:  # observed in experiment 2, where machines 4 to 6 have half of a CPU
        observed = {(c["class"], c["machine"]): c["value"] for c in cells if c["table"] == "7.7"}
        actual = [
            [_rounded(observed[i, j] / (0.5 if j > 3 else 1.0)) for j in range(1, 7)]
            for i in range(1, 5)
        ]
    else:
        actual = [[_rounded(rate / facts["slower_21_machines"]) for rate in row] for row in rates]
    spread, power = facts["iterations_within_pct"] / 100, facts["time_is_iterations_to_the_power"]
    bounds = [_rounded((1 + side * spread) ** power) for side in (-1, 1)]
    system: Table = {
        "rates": actual,
        "arrivals": printed["alpha"],
        "execution": {"kind": "uniform", "low": bounds[0], "high": bounds[1]},
        "assumed": {"rates": rates, "arrivals": printed["alpha"]},
    }
    if set(shares) != {1.0}:
        system["availability"] = shares
    failure = float(experiment.get("failure_rate_consistent") or experiment.get("failure_rate", 0))
    if failure:
        mean_repair = experiment["mean_fault_time"]
        system["failures"] = {"mean_uptime": 1 / failure, "mean_repair": mean_repair}
    return {
        "source": "K",
        "where": f"K pages 54, 57, 62, 67, 74, 92, 94, 115, 117 and {facts['pages'][str(number)]}",
        "note": f"{name}:{number} as its testbed ran, a case for each policy; "
        "published/as_run.toml has each fact with its page",
        "system": system,
        "case": {
            POLICIES[run["policy"]]: _test(run, experiment, failure, cells, facts)
            for run in experiment["runs"]
        },
    }


POLICIES = {"LPAS_DG": "lpas_dg", "Gcmu": "gcmu", "FCFS": "fcfs"}


def _shares_of_testbed(printed: Table, experiment: Table) -> list[float]:
    """Return the availability of every machine, numbered as on the testbed."""
    machines = len(printed["mu"][0]) if "mu" in printed else sum(printed["group_counts"])
    shares = [float(experiment["cpu_availability_otherwise"])] * machines
    for key in ("cpu_availability", "cpu_availability_K"):
        for share in experiment.get(key, []):
            for machine in share["machines"]:
                shares[machine - 1] = share["a"]
    return shares


def _test(run: Table, experiment: Table, failure: float, cells: list[Table], facts: Table) -> Table:
    """Give the test of one policy: its length, its arrivals, and its delays in time units."""
    units = run.get("time_units")
    minutes = run["duration_minutes"] / units if units else facts["minutes_unknown"]
    if units and run["duration_minutes"] < units:
        minutes, units = facts["minutes_exchanged"], run["duration_minutes"]
    longest = max(each.get("time_units", 0.0) for each in experiment["runs"])
    delays = {
        key: _rounded(facts[f"seconds_{key}"] / (60 * minutes))
        for key in ("before", "after", "sending")
    }
    if failure:
        delays["timeout"] = facts["timeout"]
    system: Table = {"delays": delays}
    arrivals = [
        cell["value"]
        for cell in cells
        if cell["metric"] == "arrival_rate_observed"
        and (cell.get("case"), cell.get("policy")) == (experiment["n"], run["policy"])
    ]
    if arrivals:
        system["arrivals"] = arrivals
    return {"horizon": units or longest, "system": system}


def _tables(results: Table) -> Table:
    """Describe every table and figure by its own name; the data describes some of them together."""
    known = dict(results["tables"])
    testbed, chains = known.pop("K:7.2-7.30"), known.pop("W:II-IV")
    described = {}
    for cell in results["cell"]:
        name = f"{cell['src']}:{cell['table']}"
        if name in known:
            described[name] = known.pop(name)
        elif name.startswith("K:7."):
            cells = [c for c in results["cell"] if (c["src"], c["table"]) == ("K", cell["table"])]
            described.setdefault(name, {**testbed, "about": _about_testbed(cells)})
        elif name.startswith("W:I"):
            own = chains["about"].replace("performance by", f"performance of {cell['policy']} by")
            described.setdefault(name, {**chains, "about": own})
        else:
            text = {"about": "numbers in the running text", "decimals": 2}
            described.setdefault(name, text)
    return {**described, **known}


def _about_testbed(cells: list[Table]) -> str:
    """Say which of the experiments a table of the testbed is about, and where it was done."""
    first = cells[0]
    kind = first["system"].removeprefix("MGST.")
    words = f"MGST experiment {first['case']} ({kind}), mean response "
    words += {
        "simulation": "in simulation, 95 percent confidence intervals",
        "testbed": "on the testbed",
    }[first["platform"]]
    unstable = any(cell.get("status") == "unstable" for cell in cells)
    return words + ("; N/A cells are FCFS, unstable" if unstable else "")


def entry(name: str, printed: Table, data: Table) -> Table:
    """Turn one published system into a catalogue entry; what is not understood stays as printed."""
    printed.setdefault("where", printed["source"])
    result = {"source": printed.pop("source")[0], "where": printed.pop("where")}
    result |= _note(printed)
    printed.pop("note", None)
    result |= _run_length(name, printed, data["settings"])
    _forget_recomputed(printed)
    if "group_mu" in printed or "mu" in printed:
        result |= _expected(printed)
        result["system"] = _machines(printed) | _execution(printed)
        result["system"] |= _changes(printed)
        if "costs" in printed:
            result["system"]["costs"] = printed.pop("costs")
    elif name.startswith("4.B"):
        result["system"] = _changing_hosts(printed, data["hosts"])
        result["note"] = f"{result['note']}; at the start every machine has its own group's host"
    elif name.startswith("3.G"):
        result["system"] = _hosts(printed, data["hosts"])
        if "power_values" in printed:
            result["note"] = f"the powers, not printed, are drawn once with seed {POWERS_SEED}"
    elif "fitted_means" in printed:
        result["system"] = _batches(printed)
        del printed["fitted_means"], printed["fitted_load"]
        result["note"] += "; the means here are ours, fitted to the printed figures"
    elif name == "Wisnesky":
        result |= _chains(printed)
    if "rates" in result.get("system", {}) and "arrivals" not in result["system"]:
        result |= _arrivals_and_cases(name, printed, result)
    if printed:
        result["printed"] = printed
    return result


def _chains(printed: Table) -> Table:
    """Give the grids of chains, one for each number of nodes, as inferred and as the text has it.

    What is drawn for each body stays among what is printed, for it says how.
    """
    system = {
        "random_templates": {
            "count": printed["template_jobs"],
            "mean": printed["mutaskinit"],
            "mean_spread": printed["mutaskvar_ticks"],
            "applications": printed["numapps"],
            "applications_spread": printed["numappsvar"],
            "rate": printed["ma"],
            "rate_spread": printed["mavar"],
            "task_cv": printed["vtaskinit"],
            "task_cv_spread": printed["vtaskvar"],
            "machine_cv": printed["vmachinit"],
            "allowance": printed["acceptable_latency_factor"],
        },
    }
    cases: Table = {}
    for nodes in printed["nodes"]:
        cases[str(nodes)] = {
            "note": CHAINS_NOTE,
            "horizon": printed["ticks"] / 10,
            "system": {"counts": [nodes], "one_at_a_time": True},
        }
    for nodes in printed["nodes"]:
        cases[f"text:{nodes}"] = {"horizon": printed["ticks"], "system": {"counts": [nodes]}}
    return {"system": system, "case": cases}


def _run_length(name: str, printed: Table, settings: Table) -> Table:
    """Find the published length of a run: the system's own, or that of its chapter."""
    chapter = settings.get(f"chapter{name[0]}", {}) if name[1] == "." else {}
    horizon = printed.pop("horizon", chapter.get("horizon"))
    return {} if horizon is None else {"horizon": horizon}


def _forget_recomputed(printed: Table) -> None:
    """Drop what the package computes by itself, and what only repeats other keys."""
    for key in list(printed):
        if key.startswith("computed_") or key in ("lp_check", "group_mu_total", "machines"):
            del printed[key]


def _expected(printed: Table) -> Table:
    keys = {"expected_lambda": "expected_capacity", "expected_delta": "expected_allocation"}
    expected = {ours: printed.pop(theirs) for theirs, ours in keys.items() if theirs in printed}
    printed.pop("optimum_unique", None)
    return expected


def _machines(printed: Table) -> Table:
    printed.pop("classes")
    if "mu" in printed:
        return {"rates": printed.pop("mu")}
    for key in ("index_map", "machines_by_group", "groups_note"):
        printed.pop(key, None)
    return {
        "groups": printed.pop("groups"),
        "rates": printed.pop("group_mu"),
        "counts": printed.pop("group_counts"),
    }


def _execution(printed: Table) -> Table:
    times, scv = printed.pop("execution_times", None), printed.pop("execution_scv", None)
    return {"execution": _distribution(times, scv)} if times else {}


def _distribution(times: str, scv: float) -> str | Table:
    return {"kind": times, "scv": scv} if times == "hyperexponential" else times


def _arrivals_and_cases(name: str, printed: Table, result: Table) -> Table:
    """Add arrivals, availability and failures: of the system itself, or of each of its cases."""
    system = result["system"]
    by_machine, alpha = printed.pop("alpha_by_machine", None), printed.pop("alpha", None)
    if alpha is not None:
        system["arrivals"] = by_machine or printed.pop("alpha_consistent", alpha)
    shares = printed.pop("cpu_availability_vector", [])
    if set(shares) - {0.0, 1.0}:
        system["availability"] = shares
    down = [str(number) for number, share in enumerate(shares, start=1) if share == 0]
    arrivals = printed.pop("arrival", {})
    cases: Table = {}
    for case in printed.pop("case", []):
        key = f"{case['arrival']}:{case['n']}"
        cases[key] = _case(case, system) if "cpu_availability_otherwise" in case else _note(case)
        cases[key]["system"] = {
            "arrivals": arrivals[case["arrival"]],
            **cases[key].pop("system", {}),
        }
    for experiment in printed.pop("experiment", []):
        cases[str(experiment["n"])] = _case(experiment, system)
    for case in printed.pop("table_3_11_case", []):
        cases |= _other_distributions(case, cases)
    return {**({"down": down} if down else {}), **({"case": cases} if cases else {})}


def _note(case: Table) -> Table:
    return {"note": case["note"]} if "note" in case else {}


def _case(case: Table, system: Table) -> Table:
    """Turn a case into the parts of a system that it changes, and what else is printed of it."""
    changes: Table = {}
    availability = _availability(case, sum(system.get("counts", [len(system["rates"][0])])), system)
    if availability:
        changes["availability"] = availability
    rate = case.get("failure_rate_consistent", case.get("failure_rate"))
    if rate:
        changes["failures"] = {"mean_uptime": 1 / rate, "mean_repair": case["mean_fault_time"]}
    kept = ("label", "runs", "expected_rho", "failure_rate_printed", "failure_rate_printed_A")
    stated = {key: value for key, value in case.items() if key in kept or key.startswith("stated_")}
    return {
        **_note(case),
        **({"system": changes} if changes else {}),
        **({"printed": stated} if stated else {}),
    }


def _availability(case: Table, machines: int, system: Table) -> list[float]:
    """Give every machine its availability; an empty list where all are wholly available."""
    copies = 100 if "cpu_availability_each_copy" in case else 1
    keys = ("cpu_availability", "cpu_availability_A", "cpu_availability_each_copy")
    stated = [share for key in keys for share in case.get(key, [])]
    if not stated:
        return []
    shares = np.full(machines // copies, case["cpu_availability_otherwise"])
    for share in stated:
        shares[np.array(share["machines"]) - 1] = share["a"]
    if copies == 1:
        return list(shares.tolist())
    # a system of many copies lists the machines of a group together
    ends = np.cumsum([count // copies for count in system["counts"]])
    return [a for part in np.split(shares, ends[:-1]) for a in np.tile(part, copies).tolist()]


def _other_distributions(case: Table, cases: Table) -> Table:
    """Give the cases of Table 3.11: another one's parameters, other distributions."""
    base = cases[f"{case['arrival']}:{case['same_parameters_as_case']}"]
    scv = case["fault_and_availability_scv"]
    shape = _distribution(case["fault_and_availability_times"], scv)
    found = {}
    for times, its_scv in zip(case["execution_times"], case["execution_scv"], strict=True):
        system = {**base["system"], "execution": _distribution(times, its_scv)}
        if "failures" in system:
            system["failures"] = {**system["failures"], "uptime": shape, "repair": shape}
        found[f"table_3_11:{case['n']}:{times}"] = {"system": system}
    return found


def _changes(printed: Table) -> Table:
    """Say how rates change that machines tell each other of."""
    if "rate_change_rate" not in printed:
        return {}
    del printed["rate_change_mean_interval"]
    return {
        "changes": {
            "mean_interval": 1 / printed.pop("rate_change_rate"),
            "arrivals": printed.pop("rate_change_factors_alpha"),
            "rates": printed.pop("rate_change_factors_mu"),
        }
    }


def _changing_hosts(printed: Table, hosts: Table) -> Table:
    """Build the systems of machines that take over another host's mean availability at times."""
    powers = _hosts(printed, hosts)
    machines = sum(powers["counts"])
    each = machines // len(hosts["host"])
    means = [_rounded(MarkovChain(**_chain(host)).mean) for host in hosts["host"]]
    arrivals = [[rate / machines] * machines for rate in printed.pop("alpha")]
    return {
        **{key: powers[key] for key in ("groups", "rates", "counts")},
        "arrivals": arrivals,
        "availability": [mean for mean in means for _ in range(each)],
        "changes": {
            "mean_interval": printed.pop("rate_change_mean_interval"),
            "availability": means,
        },
    }


def _hosts(printed: Table, hosts: Table) -> Table:
    """Build the systems of machines measured on real hosts: a Markov chain, Weibull up-times."""
    each, base = printed["machines_per_group"], np.array(printed["base_time"])[:, None]
    machines = [host for host in hosts["host"] for _ in range(each)]
    if "power_values" in printed:
        rng = np.random.default_rng(POWERS_SEED)
        powers = rng.choice(printed["power_values"], (len(base), len(machines)))
        names = [f"{host['name']}.{k % each + 1}" for k, host in enumerate(machines)]
        counts = [1] * len(machines)
    else:
        machines = hosts["host"]
        powers = np.array([[host["power"] for host in machines]] * len(base))
        names, counts = [host["name"] for host in machines], [each] * len(machines)
    return {
        "groups": names,
        "rates": (powers / base).tolist(),
        "counts": counts,
        "availability": [_chain(host) for host in machines],
        "failures": {
            "mean_uptime": [_mean_uptime(host) for host in machines],
            "mean_repair": hosts["fault_time_constant"],
            "uptime": [{"kind": "weibull", "shape": host["weibull_shape"]} for host in machines],
            "repair": "deterministic",
        },
    }


def _batches(printed: Table) -> Table:
    """Build the system of batches with deadlines as the text has it, on the means that fit."""
    types = printed["task_types"]
    return {
        "arrivals": [printed["arrival_rate_approx"] / types] * types,
        "rates": (1 / np.array(printed["fitted_means"])).tolist(),
        "pmf": {
            "width": printed.pop("fitted_grid_width"),
            "samples": printed["samples_per_pmf"],
            "scale": printed["gamma_scale_range"],
        },
        "deadlines": {"factor": 1, "best": printed["deadline_best_machines"]},
        "batch": {"queue_limit": printed["queue_limit"], "tasks": printed["tasks_per_trial"]},
    }


def _mean_uptime(host: Table) -> float:
    return _rounded(host["weibull_scale"] * gamma(1 + 1 / host["weibull_shape"]))


def _rounded(number: float) -> float:
    """Round to 12 significant digits, on which all processors agree."""
    return float(f"{number:.12g}")


def _chain(host: Table) -> Table:
    """Turn a host's chain into one whose rows sum to 1, without the state it never enters."""
    rows = np.array(host["transition"])
    used = rows.sum(axis=1) > 0
    rows = rows[np.ix_(used, used)]
    rows /= rows.sum(axis=1, keepdims=True)
    states = np.array([1.0, 0.5, 0.33])[used]
    return {"states": states.tolist(), "transition": rows.tolist(), "step": 10.0}


if __name__ == "__main__":
    main()
