"""What is printed: a line a case, the table of files, and a total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from rich.console import Console
from rich.table import Table

from .rules import Compared

COLUMNS = ("cases", "agree", "deviate", "known", "differ", "llama-server", "mlxcel", "ratio")
TITLE = "the same requests to both; median wall time in ms of the cases that agree"
NOTES = {
    "agrees": "agrees",
    "deviates": "deliberate deviation: ",
    "known": "known to differ: ",
    "differs": "DIFFERS: ",
}
MAX_DIFFERENCE = 300


def line(case: Compared) -> str:
    """One case: both statuses, both times, and whether they agree."""
    times = f"{1000 * case.reference.seconds:>9.1f} {1000 * case.ours.seconds:>9.1f} ms"
    note = NOTES[case.verdict] + (case.difference or "")[:MAX_DIFFERENCE]
    return f"{case.name:<48} {case.reference.status:>3} {case.ours.status:>3} {times}  {note}"


def row(compared: Sequence[Compared]) -> tuple[str, ...]:
    """The figures of some cases, one for each of ``COLUMNS``.

    The times are medians in ms of the cases that agree: to refuse a request takes less than to answer it.
    """
    count = Counter(case.verdict for case in compared)
    numbers = (len(compared), count["agrees"], count["deviates"], count["known"], count["differs"])
    return (*map(str, numbers), *_times([case for case in compared if case.verdict == "agrees"]))


def _times(alike: Sequence[Compared]) -> tuple[str, str, str]:
    if not alike:
        return "-", "-", "-"
    theirs = 1000 * median(case.reference.seconds for case in alike)
    ours = 1000 * median(case.ours.seconds for case in alike)
    return f"{theirs:.1f}", f"{ours:.1f}", f"{ours / theirs:.2f}"


def total(compared: Sequence[Compared]) -> str:
    """One line about all cases."""
    n, agree, deviate, known, differ, theirs, ours, ratio = row(compared)
    return (
        f"total: {agree} of {n} agree with llama-server, {deviate} deviate deliberately, {known} known to"
        f" differ, {differ} differ; median {theirs} ms (llama-server), {ours} ms (mlxcel), ratio {ratio}"
    )


def show(files: Mapping[str, Sequence[Compared]], console: Console) -> None:
    """The table of all files, and the total."""
    table = Table("file", title=TITLE, box=None, collapse_padding=True)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for name, compared in files.items():
        table.add_row(name, *row(compared))
    console.print(table)
    everything = [case for compared in files.values() for case in compared]
    console.print(total(everything), soft_wrap=True, highlight=False)
