"""The tests as a table that people read: points, intervals, p-values, verdicts."""

from __future__ import annotations

import math

from lcat_analysis import metrics
from lcat_analysis.compare import Comparisons
from lcat_analysis.models import written
from lcat_analysis.paired import POWER
from lcat_analysis.tables import KEY_NAMES, MISSING, Cell, Row, Table, show, signed

COLUMNS = (
    "Dataset", "n", "Difference", "95 % CI", "t", "p", "p (Holm)", "p (Wilcoxon)", "d_z", "Detectable", "Verdict", "Note",
)  # fmt: skip


def comparison_table(comparisons: Comparisons) -> Table:
    """A row a test; the CSV holds every number with full precision."""
    names = [KEY_NAMES.get(key, key) for key in comparisons.variants]
    columns = [COLUMNS[0], *names, *COLUMNS[1:]]
    columns[columns.index("95 % CI")] = f"{100 * (1 - comparisons.alpha):g} % CI"
    rows = []
    previous = None
    for record in comparisons.table.to_dict("records"):
        pair = f"{written(record['model'])} − {written(record['baseline'])}"
        variant = [Cell(show(record[key])) for key in comparisons.variants]
        cells = [Cell(record["dataset"]), *variant, *_numbers(record), Cell(record["verdict"], _mark(record))]
        cells.append(Cell(record["note"]))
        rows.append(Row((pair,), cells, previous not in (None, pair)))
        previous = pair
    return Table(
        f"Paired comparisons, test {metrics.label(comparisons.metric)}",
        ["Pair"],
        columns,
        rows,
        footer(comparisons),
        comparisons.table,
        left=("Dataset", *names, "Verdict", "Note"),
    )


def footer(comparisons: Comparisons) -> list[str]:
    alpha, margin = comparisons.alpha, comparisons.margin
    unit = metrics.unit(comparisons.metric)
    return [
        f"Differences: model − baseline over the same seeds{f', in {unit}' if unit else ''}. "
        f"t, p: two-sided paired t-test. d_z: mean difference / its sd.",
        f"Holm: over {comparisons.familysigned()}. Detectable: the smallest true difference that n seeds with this "
        f"spread show with {100 * POWER:g} % power.",
        f"Verdict: better or worse when Holm's p < {alpha:g}; else equivalent when two one-sided tests place the "
        f"difference within ±{margin:g} {unit}".rstrip()
        + f" (p < {alpha:g}, not adjusted); else undetermined.",
    ]


def _mark(record: dict) -> str:
    return record["verdict"] if record["verdict"] in ("better", "worse") else ""


def _numbers(record: dict) -> list[Cell]:
    if record["verdict"] == "refused":
        return [Cell(MISSING) for _ in range(9)]
    return [
        Cell(str(record["n"]), sort=record["n"]),
        _signed(record["difference"]),
        Cell(f"[{signed(record['ci_low'])}, {signed(record['ci_high'])}]", sort=record["ci_low"]),
        _signed(record["t"]),
        _p(record["p"]),
        _p(record["p_holm"]),
        _p(record["p_wilcoxon"]),
        _signed(record["effect_size"]),
        _detectable(record["detectable"]),
    ]


def _detectable(value: float | None) -> Cell:
    return Cell(MISSING) if value is None or math.isnan(value) else Cell(f"{value:.2f}", sort=value)


def _signed(value: float) -> Cell:
    return Cell(signed(value), sort=value)


def _p(value: float) -> Cell:
    return Cell("<0.001" if value < 0.001 else f"{value:.3f}", sort=value)
