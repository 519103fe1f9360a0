"""Traces of real clusters and grids: read, written, characterised and replayed."""

from .character import (
    Character,
    FailureCharacter,
    characterise,
    characterise_failures,
    throughput_system,
)
from .failure_trace import FailureTrace, read_fta, read_lanl, write_fta, write_lanl
from .fit import Fitted, fit
from .job_trace import JobTrace, read_gwf, read_swf, write_gwf, write_swf
from .machines import Machines, machines_for, system_of
from .outages import Outages, outages
from .read import read_failures, read_jobs, read_trace
from .replay import Replay, replay
from .throughput import Throughputs, read_throughputs, write_throughputs
from .trace_file import Account, trace_name
from .workload import Workload, classify, window, workload

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
    "trace_name",
    "window",
    "workload",
    "write_fta",
    "write_gwf",
    "write_lanl",
    "write_swf",
    "write_throughputs",
]
