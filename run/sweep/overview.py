"""The text of ``lcat status``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from lcat_core.run_folder import RunRecord, State, states_in_order
from lcat_core.text import align_columns, count
from lcat_run.sweep.cost import Estimate, duration_text
from lcat_run.sweep.state import Snapshot

_EXAMPLES_SHOWN = 5
_EXPLAINED = (State.FAILED, State.KILLED, State.LOST, State.QUEUED)


def describe_sweep(title: str, runs: Sequence[RunRecord], snapshot: Snapshot) -> str:
    """Return counts by state, model and dataset, the time left, and the reasons why runs failed or wait."""
    counts = snapshot.counts()
    shown = [f"{counts[state]} {state}" for state in states_in_order(counts)]
    lines = [f"{title}: {count(len(runs), 'run')}: {', '.join(shown)}"]
    left = _time_left(runs, snapshot)
    if left is not None:
        lines.append(f"about {duration_text(left)} left with {counts[State.RUNNING]} running")
    return "\n".join([*lines, "", *_table(runs, snapshot), *_reasons(snapshot)])


def _time_left(runs: Sequence[RunRecord], snapshot: Snapshot) -> float | None:
    """Estimate the seconds until all is done with as many runs at once as now; None if nothing runs or is known."""
    running = len(snapshot.run_ids(State.RUNNING))
    estimate = Estimate(runs, snapshot)
    waiting = [run for run in runs if snapshot.states[run.run_id].state not in (State.DONE, State.FAILED)]
    known = [seconds for seconds in map(estimate.seconds, waiting) if seconds is not None]
    if not running or not waiting or len(known) < len(waiting):
        return None
    return sum(known) / running


def _table(runs: Sequence[RunRecord], snapshot: Snapshot) -> list[str]:
    """Return done runs of all runs, per model and dataset."""
    cells: defaultdict[tuple[str, str], Counter[State]] = defaultdict(Counter)
    for run in runs:
        cells[run.model, run.dataset][snapshot.states[run.run_id].state] += 1
    models = list(dict.fromkeys(run.model for run in runs))
    rows = [["done of all", *models]]
    for dataset in dict.fromkeys(run.dataset for run in runs):
        rows.append([dataset, *(_cell(cells.get((model, dataset), Counter())) for model in models)])
    return align_columns(rows)


def _cell(counts: Counter[State]) -> str:
    if not counts:
        return "-"
    bad = counts[State.FAILED] + counts[State.KILLED] + counts[State.LOST]
    return f"{counts[State.DONE]}/{counts.total()}" + (f" {bad}!" if bad else "")


def _reasons(snapshot: Snapshot) -> list[str]:
    lines = []
    for state in _EXPLAINED:
        details = Counter(snapshot.states[run_id].detail for run_id in snapshot.run_ids(state))
        details.pop("", None)
        if details:
            lines += ["", f"{state}:"]
        lines += [f"  {number} × {detail}" for detail, number in details.most_common(_EXAMPLES_SHOWN)]
        if len(details) > _EXAMPLES_SHOWN:
            lines.append(f"  and {count(len(details) - _EXAMPLES_SHOWN, 'other reason')}")
    return lines
