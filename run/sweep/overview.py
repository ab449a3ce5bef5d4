"""The text of ``lcat status``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from lcat_run.sweep.cost import Estimate, duration_text
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.plan import Run
from lcat_run.sweep.queue import QueueLook, look_at_queue
from lcat_run.sweep.state import STATES, Snapshot, scan

_EXAMPLES_SHOWN = 5


def overview(folder: SweepFolder) -> tuple[str, int]:
    """What there is to say about a sweep, and how many of its runs may still end without a new command."""
    runs = folder.read_runs()
    snapshot, queue = scan(folder, runs), QueueLook()
    if not all(map(snapshot.is_done, runs)):
        queue = look_at_queue(folder)
        snapshot = scan(folder, runs, queue.states)
    counts = snapshot.counts()
    shown = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    lines = [f"{folder.path}: {len(runs)} runs: {', '.join(shown)}"]
    left = _time_left(runs, snapshot)
    if left is not None:
        lines.append(f"about {duration_text(left)} left with {counts['running']} running")
    lines += ["", *_table(runs, snapshot)]
    lines += _reasons(snapshot)
    lines += [f"note: {note}" for note in [*queue.notes, *snapshot.complaints]]
    return "\n".join(lines), counts["running"] + counts["queued"] + counts["unknown"]


def _time_left(runs: Sequence[Run], snapshot: Snapshot) -> float | None:
    """Seconds until all is done with as many runs at once as now; None if nothing runs or nothing is known."""
    running = len(snapshot.of("running"))
    estimate = Estimate(runs, snapshot)
    waiting = [run for run in runs if snapshot.states[run.run_id].state not in ("done", "failed")]
    seconds = [estimate.seconds(run) for run in waiting]
    if not running or not seconds or None in seconds:
        return None
    return sum(seconds) / running


def _table(runs: Sequence[Run], snapshot: Snapshot) -> list[str]:
    """Done of all per model and dataset, with what is amiss."""
    cells: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for run in runs:
        cells[run.model, run.dataset][snapshot.states[run.run_id].state] += 1
    models = list(dict.fromkeys(run.model for run in runs))
    datasets = list(dict.fromkeys(run.dataset for run in runs))
    rows = [["done of all", *models]]
    for dataset in datasets:
        rows.append([dataset, *(_cell(cells.get((model, dataset), Counter())) for model in models)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def _cell(counts: Counter[str]) -> str:
    if not counts:
        return "-"
    bad = counts["failed"] + counts["killed"] + counts["lost"]
    return f"{counts['done']}/{counts.total()}" + (f" {bad}!" if bad else "")


def _reasons(snapshot: Snapshot) -> list[str]:
    lines = []
    for state in ("failed", "killed", "lost", "queued"):
        details = Counter(snapshot.states[run_id].detail for run_id in snapshot.of(state))
        details.pop("", None)
        if details:
            lines += ["", f"{state}:"]
        lines += [f"  {count} × {detail}" for detail, count in details.most_common(_EXAMPLES_SHOWN)]
        if len(details) > _EXAMPLES_SHOWN:
            lines.append(f"  and {len(details) - _EXAMPLES_SHOWN} other reasons")
    return lines
