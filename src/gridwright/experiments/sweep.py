"""``sweep``: several policies on a system while one of its parameters varies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..model import InputError, System, did_you_mean
from ..policies import Policy
from ..tabular import Tabular
from .ahead import Wanted, together
from .device import GPU
from .result import Result
from .results_by_kind import choose_policies
from .simulate import PolicyGiven, SystemGiven, resolve, simulate
from .variation import BELIEFS, VARIATIONS, is_variation, varied


class Point(NamedTuple):
    """The results of all policies at one value."""

    value: float | str
    results: tuple[Result, ...]


@dataclass(frozen=True, eq=False)
class Sweep(Tabular):
    """Results of several policies for several values of one parameter."""

    system: System
    vary: str
    policies: tuple[str, ...]
    """Their names, without the value that varies."""
    points: tuple[Point, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each value and policy."""
        return [
            {
                "value": point.value,
                "policy": policy,
                "stable": result.stable,
                "long_run_load": result.long_run_load,
                **{name: result.figure(name) for name in result.criteria},
            }
            for point in self.points
            for policy, result in zip(self.policies, point.results, strict=True)
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the sweep as ``--json`` prints it."""
        first = self.points[0].results[0]
        return {
            "system": self.system.name,
            "vary": self.vary,
            "horizon": first.horizon,
            "replications": len(first.replications),
            "seed": first.seed,
            "points": [
                {"value": point.value, "results": [each.as_json() for each in point.results]}
                for point in self.points
            ],
        }


def sweep(
    system: SystemGiven,
    policies: Sequence[PolicyGiven],
    vary: str,
    values: Sequence[float | str],
    horizon: float | None = None,
    replications: int = 10,
    seed: int = 1,
    *,
    progress: Callable[[float | str, Policy, float], None] | None = None,
    **options: Any,
) -> Sweep:
    """Simulate policies for several values of one parameter; other parameters are simulate's.

    What can vary: ``load`` (arrivals are scaled to this long-run load, failures included),
    ``arrivals`` and ``machines`` (times as many), ``machines.GROUP`` (of a group), ``nodes``
    (machines that are all alike), ``mean_uptime`` and ``mean_repair``, ``delays.before``,
    ``.after``, ``.detection`` and ``.reporting``, ``mean_interval`` (between changes),
    ``inaccuracy.arrivals``, ``.rates`` and ``.availability`` (of what is believed); for batch
    policies ``queue_limit``, ``tasks``, ``deadline_factor`` and what is believed of the pmfs
    (``assumed.shift``, ``.scale``, ``.execution``); for chains ``perturbation.variation``,
    ``.arrivals`` and ``.uptimes``; or a parameter of the policies, in numbers or words. All
    policies have the same arrivals.

    >>> found = sweep("2.B", ["mct", "lpas"], "load", [0.3, 0.6], horizon=200, replications=2)
    >>> len(found.points)
    2
    """
    system, horizon = resolve(system, horizon)
    chosen = choose_policies(policies, 1, "there is no policy to simulate; name at least one")
    if len(values) == 0:
        raise InputError(f"there is no value of {vary}; give at least one")
    if (delays := options.pop("delays", None)) is not None:
        system = system.replace(delays=delays)
    if vary == "time":
        raise InputError("time is varied by sweep_over_time, for systems with a [profile]")
    about_system = is_variation(vary)
    known = {name for policy in chosen for name in policy.parameters}
    if not about_system and vary not in known:
        choices = [*VARIATIONS, *BELIEFS, "machines.GROUP", *sorted(known)]
        hint = did_you_mean(vary, choices) or f"; expected {', '.join(choices)}"
        raise InputError(f"{vary!r} cannot be varied{hint}")
    systems = {value: varied(system, vary, value) if about_system else system for value in values}
    if options.get("on") == GPU:
        calls = [
            Wanted(at, _changed(policy, vary, value), horizon, replications, seed)
            for value, at in systems.items()
            for policy in chosen
        ]
        report_all = None
        if progress is not None:
            report_all = lambda share: progress(values[0], chosen[0], share)  # noqa: E731
        options = together(calls, options, report_all)
    points: list[Point] = []
    for value in values:
        at = systems[value]
        results = []
        for k, policy in enumerate(chosen):
            own = not about_system and vary in policy.parameters
            if points and not own and not about_system:
                results.append(points[0].results[k])  # it does not have this parameter
                continue
            report = None
            if progress is not None:
                report = lambda done, runs, v=value, p=policy: progress(v, p, done)  # noqa: E731
            changed = _changed(policy, vary, value)
            results.append(
                simulate(at, changed, horizon, replications, seed, progress=report, **options)
            )
        points.append(Point(value, tuple(results)))
    return Sweep(system, vary, tuple(map(str, chosen)), tuple(points))


def _changed(policy: Policy, name: str, value: float | str) -> Policy:
    """Return a policy with another value of a parameter, if it has one of that name."""
    has_it = not is_variation(name) and name in policy.parameters
    return policy(**{name: value}) if has_it else policy
