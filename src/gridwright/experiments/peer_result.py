"""What a simulation of a decentralised system measured besides."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..statistics import Estimate, estimate
from .result import Floats, Result

__all__ = ["PeerResult"]

COUNTS_ITSELF = ("kpb_dec",)
"""Policies for which the source counts the asking machine among those asked."""


class PeerResult(Result):
    """A result with the messages that machines exchanged, and how far they knew each other."""

    further: ClassVar[tuple[str, ...]] = (
        "messages_per_task",
        "like_for_like",
        "view_age",
        "disagreement",
    )

    def values(self, name: str) -> Floats:
        """Return a figure by its name, one value a replication.

        ``messages_per_task`` by the rule of the source for the policy: a question and an answer for
        every machine asked, the asking one included for KPB and never for the others;
        ``like_for_like`` never counts it.
        """
        met = np.array([r.more["met"] for r in self.replications], dtype=float)
        considered = np.array([r.more["considered"] for r in self.replications], dtype=float)
        tasks = np.array([max(r.tasks, 1) for r in self.replications], dtype=float)
        if name == "messages_per_task":
            return 2 * (considered if self.policy.name in COUNTS_ITSELF else met) / tasks
        if name == "like_for_like":
            return 2 * met / tasks
        return super().values(name)

    @property
    def messages(self) -> Estimate:
        """Messages sent, by the rule of the source for the policy."""
        tasks = np.array([r.tasks for r in self.replications], dtype=float)
        return estimate(self.values("messages_per_task") * tasks)

    @property
    def information(self) -> Estimate:
        """The mean number of other machines asked about their state per arrival."""
        return estimate(self.values("like_for_like") / 2)
