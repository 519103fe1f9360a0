"""Traces of real clusters and grids: read, written, characterised and replayed."""

from .account import Account
from .character import (
    Character,
    FailureCharacter,
    characterise,
    characterise_failures,
    throughput_system,
)
from .failure_trace import FailureTrace
from .fit import Fitted, fit
from .fta import read_fta, write_fta
from .gwf import read_gwf, write_gwf
from .job_trace import JobTrace
from .lanl import read_lanl, write_lanl
from .machines import Machines, machines_for, system_of
from .outages import Outages, outages
from .read import read_failures, read_jobs, read_trace
from .replay import Replay, replay
from .swf import read_swf, write_swf
from .task_class import classify
from .throughput import Throughputs, read_throughputs, write_throughputs
from .workload import Workload, workload

__all__ = [
    "Account",
    "Character",
    "FailureCharacter",
    "FailureTrace",
    "Fitted",
    "JobTrace",
    "Machines",
    "Outages",
    "Replay",
    "Throughputs",
    "Workload",
    "characterise",
    "characterise_failures",
    "classify",
    "fit",
    "machines_for",
    "outages",
    "read_failures",
    "read_fta",
    "read_gwf",
    "read_jobs",
    "read_lanl",
    "read_swf",
    "read_throughputs",
    "read_trace",
    "replay",
    "system_of",
    "throughput_system",
    "workload",
    "write_fta",
    "write_gwf",
    "write_lanl",
    "write_swf",
    "write_throughputs",
]
