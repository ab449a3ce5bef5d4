"""The text of ``lcat sweep --dry-run``: counts, the first run in full, and an estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lcat_core.run_folder import RunRecord
from lcat_core.text import count
from lcat_run.sweep.cost import duration_text, guess_seconds
from lcat_run.sweep.grid_types import Axis
from lcat_run.sweep.plan import Plan
from lcat_run.sweep.state import Snapshot

_SHOWN_POINTS = 16


def describe_launch(plan: Plan, runs: Sequence[RunRecord], snapshot: Snapshot, workers: int) -> str:
    """Describe the sweep and the ``runs`` that a launch with so many ``workers`` would start."""
    grid, first = plan.grid, plan.grid.blocks[0]
    lines = [f"{grid.name}: {count(len(plan.runs), 'run')}, {sum(map(snapshot.is_done, plan.runs))} of them done"]
    lines.append(f"  {count(len(first.models), 'model')}: {', '.join(first.models)}")
    lines += [f"  {_axis_text(axis)}" for axis in first.axes]
    lines.append(f"  {count(len(first.seeds), 'seed')}: {', '.join(map(str, first.seeds))}")
    if len(grid.blocks) > 1:
        lines.append(f"  and {count(len(grid.blocks) - 1, 'included block')}")
    if not runs:
        return "\n".join([*lines, "nothing to do"])
    lines += ["", f"{len(runs)} to start, first {runs[0].run_id}:"]
    lines += [f"  {key}: {value}" for key, value in sorted(runs[0].settings(plan.common).items())]
    workers = min(workers, len(runs))
    seconds = guess_seconds(plan, runs, snapshot) / workers
    lines += ["", f"roughly {duration_text(seconds)} with {count(workers, 'worker')}"]
    return "\n".join(lines)


def _axis_text(axis: Axis) -> str:
    """Write the values of an axis; of many, the first."""
    texts = [_point_text(point) for point in axis.points]
    if len(texts) <= _SHOWN_POINTS:
        return f"{axis.name}: {', '.join(texts)}"
    keys = "" if axis.keys == {axis.name} else f" of {'/'.join(axis.points[0])}"
    return f"{axis.name}: {len(texts)} values{keys}: {', '.join(texts[:3])}, …"


def _point_text(point: Mapping[str, Any]) -> str:
    return "/".join(str(value) for value in point.values())
