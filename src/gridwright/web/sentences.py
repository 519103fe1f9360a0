"""The events of a run as sentences."""

from ..grid.event import Entry

THEN = {
    "resubmit": "it is sent again",
    "duplicate": "a copy of it is sent",
    "fail": "it counts as failed",
    "wait": "it continues",
    "stopped": "its machine was stopped",
}
"""What is done about a job that took too long."""
KINDS = {
    "begun": "The run begins.",
    "up": "Machine {machine} is up.",
    "down": "Machine {machine} is down.",
    "failure": "Machine {machine} fails.",
    "repair": "A failure of machine {machine} ends.",
    "killed": "An operator kills machine {machine}.",
    "started again": "An operator starts machine {machine}.",
    "paused": "An operator pauses machine {machine}.",
    "resumed": "An operator resumes machine {machine}.",
    "availability imposed": "An operator gives machine {machine} {availability:.0%} of its CPU.",
    "availability free": "Machine {machine} has its usual share of the CPU again.",
    "availability": "Machine {machine} has {measured:.0%} of its CPU; expected: {predicted:.0%}.",
    "prediction": "The CPU availability of machine {machine} is predicted as {mode}.",
    "lost": "Machine {machine} loses job {job}, which runs again.",
    "failed": "Job {job} fails.",
    "cancelled": "Job {job} is cancelled.",
    "late answer": "Machine {machine} answers for job {job} too late.",
    "timed out": "Job {job} takes too long on machine {machine}: {then}.",
    "plan": "Plan {number} is made.",
    "rates": "The grid assumes other execution rates.",
    "arrivals": "The grid assumes other arrival rates.",
    "nobody": "No machine can run class {task_class} now.",
    "changed": "The {what} of machine {machine} becomes {value:g}.",
    "run paused": "The run is paused.",
    "run resumed": "The run continues.",
    "run stopped": "The run is stopped.",
}
"""What an event of each kind says; names in braces are its fields."""
AGAIN = "The run continues after a stop."
TAKEN = "An operator takes machine {machine} away for {period:g} time units."


def sentence(entry: Entry) -> str:
    """Return what an event says, as a sentence with its time.

    >>> sentence(Entry(4.25, "killed", machine="m2"))
    '4.25: An operator kills machine m2.'
    """
    words = TAKEN if "period" in entry.fields else KINDS.get(entry.kind, "")
    if entry.kind == "begun" and entry.fields.get("resumed"):
        words = AGAIN
    fields = dict(entry.fields)
    if "then" in fields:
        fields["then"] = THEN.get(str(fields["then"]), "it is stopped")
    try:
        said = words.format(machine=entry.machine, job=entry.job, **fields)
    except (KeyError, TypeError, ValueError):  # a field is missing, or is not a number
        said = ""
    if not said:
        where = f" on machine {entry.machine}" if entry.machine else ""
        which = f", job {entry.job}" if entry.job is not None else ""
        said = f"{entry.kind.capitalize()}{where}{which}."
    return f"{entry.time:.2f}: {said}"


OPERATED = {
    "paused": "pause",
    "killed": "kill",
    "started again": "start",
    "availability imposed": "imposed availability",
}
"""What operators do, by the kind of the event; a resumption ends a pause."""


def operated(entries: list[Entry]) -> str:
    """Count the actions of operators in words.

    >>> operated([Entry(1.0, "paused"), Entry(2.0, "paused"), Entry(3.0, "killed")])
    '2 pauses, 1 kill'
    """
    kinds = [each.kind for each in entries]
    counts = {words: kinds.count(kind) for kind, words in OPERATED.items()}
    return ", ".join(
        f"{number} {words}{'' if number == 1 or words.endswith('y') else 's'}"
        for words, number in counts.items()
        if number
    )
