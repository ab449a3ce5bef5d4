"""The tests as a readable table: differences, intervals, p-values, verdicts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from lcat_analysis.cells import (
    MISSING,
    Cell,
    Row,
    Table,
    interval_cell,
    key_name,
    number_cell,
    p_cell,
    show,
    signed_cell,
)
from lcat_analysis.compare import Comparisons, pair_name
from lcat_analysis.paired import POWER
from lcat_core.models import display_name

_NUMBERS_BEFORE_CI = ("Verdict", "n", "t", "p", "Difference")
_NUMBERS_AFTER_CI = ("Holm p", "Wilcoxon p", "d_z", "Detectable")


def comparison_table(comparisons: Comparisons) -> Table:
    """Return one row per test; the CSV has every number with full precision."""
    has_notes = bool(comparisons.tested["note"].any())
    interval = f"{100 * (1 - comparisons.alpha):g} % CI"
    columns = [*_NUMBERS_BEFORE_CI, interval, *_NUMBERS_AFTER_CI, *(["Note"] if has_notes else [])]
    rows = []
    previous = None
    for record in comparisons.table.to_dict("records"):
        pair = pair_name(record["model"], record["baseline"])
        labels = (pair, *(show(record[key]) for key in ("dataset", *comparisons.variants)))
        cells = [Cell(record["verdict"], _mark(record)), *_numbers(record, comparisons.measure.digits)]
        cells += [Cell(record["note"])] if has_notes else []
        rows.append(Row(labels, cells, previous not in (None, pair)))
        previous = pair
    return Table(
        f"Paired comparisons, test {comparisons.measure.title}",
        ["Pair", "Dataset", *map(key_name, comparisons.variants)],
        columns,
        rows,
        footer(comparisons),
        comparisons.table,
        left=("Verdict", "Note"),
        paper_columns=("Verdict", "n", "Difference", interval, "p", "Holm p"),
    )


def footer(comparisons: Comparisons) -> list[str]:
    """Explain the columns, and name the pairs that could not be tested."""
    alpha, margin = comparisons.alpha, comparisons.margin
    unit = comparisons.measure.unit
    in_unit = f", in {unit}" if unit else ""
    pairs = "runs of the same split and seed" if comparisons.unit == "run" else "means of the same split over its seeds"
    equivalent = ""
    if margin is not None:
        equivalent = (
            f"else equivalent if two one-sided tests show that the difference is within {f'±{margin:g} {unit}'.rstrip()} "
            f"(p < {alpha:g}, so the {100 * (1 - 2 * alpha):g} % interval is inside; not adjusted); "
        )
    test = "two-sided paired t-test"
    if comparisons.unit == "split":
        test = (
            "two-sided corrected resampled t-test (Nadeau and Bengio), which allows for the nodes that splits share; "
            "the signed-rank test has no such correction"
        )
    return [
        f"Differences: model − baseline over n pairs of {pairs}{in_unit}. t, p: {test}. d_z: mean difference / its sd.",
        f"Holm p: adjusted over {comparisons.family_text()}. Detectable: the smallest true difference that n pairs with this "
        f"spread detect with {100 * POWER:g} % power at p < {alpha:g}, before Holm's adjustment.",
        f"Verdict: better or worse if Holm's p < {alpha:g}; {equivalent}else suggestive if only the unadjusted p < {alpha:g}; "
        "else undetermined.",
        *comparisons.pooling_notes(),
        *refusals(comparisons),
    ]


def refusals(comparisons: Comparisons) -> list[str]:
    """Return one line for each pair that could not be tested, naming what is missing."""
    lines = [
        f"Refused: {pair_name(model, baseline)}: {display_name(model)} has no finished run."
        for model, baseline in comparisons.untested.items()
    ]
    for record in comparisons.table[comparisons.table["verdict"] == "refused"].to_dict("records"):
        where = " ".join(show(record[key]) for key in ("dataset", *comparisons.variants))
        lines.append(f"Refused: {pair_name(record['model'], record['baseline'])} on {where}: {record['note']}.")
    return lines


def _mark(record: Mapping[Hashable, Any]) -> str:
    return record["verdict"] if record["verdict"] in ("better", "worse") else ""


def _numbers(record: Mapping[Hashable, Any], digits: int) -> list[Cell]:
    if record["verdict"] == "refused":
        return [Cell(MISSING) for _ in range(9)]
    return [
        Cell(str(record["n"]), sort=record["n"]),
        signed_cell(record["t"]),
        p_cell(record["p"]),
        signed_cell(record["difference"], digits),
        interval_cell(record["ci_low"], record["ci_high"], digits),
        p_cell(record["p_holm"]),
        p_cell(record["p_wilcoxon"]),
        signed_cell(record["effect_size"]),
        number_cell(record["detectable"], digits),
    ]
