"""The tests as a table that people read: points, intervals, p-values, verdicts."""

from __future__ import annotations

import math

from lcat_analysis import metrics
from lcat_analysis.compare import Comparisons
from lcat_analysis.paired import POWER
from lcat_analysis.tables import KEY_NAMES, MISSING, Cell, Row, Table, show, signed
from lcat_core.models import display_name

COLUMNS = ("Verdict", "n", "t", "p", "Difference", "95 % CI", "Holm p", "Wilcoxon p", "d_z", "Detectable")


def comparison_table(comparisons: Comparisons) -> Table:
    """A row a test; the CSV holds every number with full precision."""
    names = [KEY_NAMES.get(key, key) for key in comparisons.variants]
    notes = comparisons.tested["note"].any()
    columns = [*COLUMNS, *(["Note"] if notes else [])]
    columns[columns.index("95 % CI")] = f"{100 * (1 - comparisons.alpha):g} % CI"
    digits = 2 if metrics.unit(comparisons.metric) else 4  # two of a per cent, four of a loss
    rows = []
    previous = None
    for record in comparisons.table.to_dict("records"):
        pair = f"{display_name(record['model'])} − {display_name(record['baseline'])}"
        labels = (pair, *(show(record[key]) for key in ("dataset", *comparisons.variants)))
        cells = [Cell(record["verdict"], _mark(record)), *_numbers(record, digits)]
        cells += [Cell(record["note"])] if notes else []
        rows.append(Row(labels, cells, previous not in (None, pair)))
        previous = pair
    return Table(
        f"Paired comparisons, test {metrics.label(comparisons.metric)}",
        ["Pair", "Dataset", *names],
        columns,
        rows,
        footer(comparisons),
        comparisons.table,
        left=("Verdict", "Note"),
    )


def footer(comparisons: Comparisons) -> list[str]:
    alpha, margin = comparisons.alpha, comparisons.margin
    unit = metrics.unit(comparisons.metric)
    in_unit = f", in {unit}" if unit else ""
    pairs = "runs of the same split and seed" if comparisons.unit == "run" else "means of the same split over its seeds"
    equivalent = ""
    if margin is not None:
        equivalent = (
            f"else equivalent when two one-sided tests place the difference within {f'±{margin:g} {unit}'.rstrip()} "
            f"(p < {alpha:g}, so that the {100 * (1 - 2 * alpha):g} % interval lies inside; not adjusted); "
        )
    return [
        f"Differences: model − baseline over n pairs of {pairs}{in_unit}. t, p: two-sided paired t-test. "
        "d_z: mean difference / its sd.",
        f"Holm p: adjusted over {comparisons.family_text()}. Detectable: the smallest true difference that n "
        f"pairs with this spread show with {100 * POWER:g} % power at p < {alpha:g}, before Holm's adjustment.",
        f"Verdict: better or worse when Holm's p < {alpha:g}; {equivalent}else undetermined.",
        *_pooling(comparisons),
        *refusals(comparisons),
    ]


def _pooling(comparisons: Comparisons) -> list[str]:
    if comparisons.splits < 2 or comparisons.unit == "split":
        return []
    return [
        f"The pairs of up to {comparisons.splits} splits are pooled as if independent. Pairs of one split share it, "
        "so these tests speak of new seeds on these splits, not of new splits: for those, --unit split."
    ]


def refusals(comparisons: Comparisons) -> list[str]:
    """A line for each pair that could not be tested, naming what is missing."""
    lines = [
        f"Refused: {display_name(model)} − {display_name(baseline)}: {display_name(model)} has no finished run."
        for model, baseline in comparisons.untested.items()
    ]
    for record in comparisons.table[comparisons.table["verdict"] == "refused"].to_dict("records"):
        where = " ".join(show(record[key]) for key in ("dataset", *comparisons.variants))
        pair = f"{display_name(record['model'])} − {display_name(record['baseline'])}"
        lines.append(f"Refused: {pair} on {where}: {record['note']}.")
    return lines


def _mark(record: dict) -> str:
    return record["verdict"] if record["verdict"] in ("better", "worse") else ""


def _numbers(record: dict, digits: int) -> list[Cell]:
    if record["verdict"] == "refused":
        return [Cell(MISSING) for _ in range(9)]
    return [
        Cell(str(record["n"]), sort=record["n"]),
        _signed(record["t"]),
        _p(record["p"]),
        _signed(record["difference"], digits),
        Cell(f"[{signed(record['ci_low'], digits)}, {signed(record['ci_high'], digits)}]", sort=record["ci_low"]),
        _p(record["p_holm"]),
        _p(record["p_wilcoxon"]),
        _signed(record["effect_size"]),
        _detectable(record["detectable"], digits),
    ]


def _detectable(value: float | None, digits: int) -> Cell:
    return Cell(MISSING) if value is None or math.isnan(value) else Cell(f"{value:.{digits}f}", sort=value)


def _signed(value: float, digits: int = 2) -> Cell:
    return Cell(signed(value, digits), sort=value)


def _p(value: float) -> Cell:
    return Cell("<0.001" if value < 0.001 else f"{value:.3f}", sort=value)
