"""The results across datasets as tables: pairs, mean ranks, and the post-hoc tests of every two models."""

from __future__ import annotations

import math

from lcat_analysis.across import Across
from lcat_analysis.cells import Cell, Row, Table, interval_cell, number_cell, p_cell, p_text, signed_cell
from lcat_analysis.compare import pair_name
from lcat_analysis.ranking import Ranking
from lcat_core.models import display_name


def pairs_table(across: Across) -> Table:
    """Return one row per pair: wins, mean difference, signed-rank test, pooled estimate."""
    digits = across.measure.digits
    interval = f"{100 * (1 - across.alpha):g} % CI"
    columns = ["W/T/L", "Mean", interval, "Wilcoxon p", "Holm p"]
    columns += ["Pooled", interval, "Pooled p", "τ", "I²"]
    rows = []
    for row in across.pairs.to_dict("records"):
        cells = [
            Cell(f"{row['wins']}/{row['ties']}/{row['losses']}", sort=row["wins"]),
            signed_cell(row["mean"], digits),
            interval_cell(row["mean_low"], row["mean_high"], digits),
            p_cell(row["p_wilcoxon"]),
            p_cell(row["p_holm"]),
            signed_cell(row["pooled"], digits),
            interval_cell(row["pooled_low"], row["pooled_high"], digits),
            p_cell(row["p_pooled"]),
            number_cell(row["tau"], digits),
            number_cell(row["i_squared"]),
        ]
        rows.append(Row((pair_name(row["model"], row["baseline"]),), cells))
    counts = sorted(set(across.pairs["datasets"]))
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    better = "higher" if across.measure.higher_is_better else "lower"
    notes = [
        f"Over {n} datasets, each counted once. W/T/L: wins, ties and losses; a win is a better mean ({better} is "
        "better), however small. "
        "Wilcoxon p: signed-rank test over the datasets, exact for up to 50; Holm p: adjusted for "
        f"{_number_of(len(rows), 'pair')}.",
        "Mean: mean difference, unweighted, with a t-interval over the datasets. Pooled: random effects over the datasets, weights "
        "1/(se² + τ²), Knapp–Hartung interval; τ: standard deviation of the true difference between datasets; I²: share of "
        "the variance that the seeds do not explain.",
        *across.notes,
    ]
    title = f"Across datasets, difference of test {across.measure.title}"
    return Table(title, ["Pair"], columns, rows, notes, across.pairs)


def ranks_table(ranking: Ranking) -> Table:
    """Return one row per model, best mean rank first; the CSV has the rank on every dataset."""
    rows = [
        Row(
            (display_name(model),),
            [
                number_cell(rank),
                number_cell(ranking.means[model].mean()),
                _wins(ranking, model),
                _group(ranking, model),
            ],
        )
        for model, rank in zip(ranking.means.columns, ranking.mean_ranks, strict=True)
    ]
    data = ranking.ranks.T.assign(mean_rank=ranking.mean_ranks).reset_index(names="model")
    columns = ["Mean rank", f"Mean {ranking.measure.label}", "Best on", "Indistinguishable from"]
    return Table(
        f"Mean ranks over {len(ranking.means)} datasets",
        ["Model"],
        columns,
        rows,
        ranking_notes(ranking),
        data,
        left=(columns[-1],),
    )


def _wins(ranking: Ranking, model: str) -> Cell:
    best = int((ranking.ranks[model] == ranking.ranks.min(axis=1)).sum())
    return Cell(str(best), sort=best)


def _group(ranking: Ranking, model: str) -> Cell:
    """Name the models from which the post-hoc test does not tell a model apart."""
    tests = ranking.posthoc[ranking.posthoc["p_holm"] >= ranking.alpha]
    own = tests[(tests["model"] == model) | (tests["other"] == model)]
    others = {row["model"] if row["other"] == model else row["other"] for row in own.to_dict("records")}
    if len(others) == len(ranking.means.columns) - 1:
        return Cell("any other model")
    return Cell(", ".join(display_name(name) for name in ranking.means.columns if name in others) or "–")


def ranking_notes(ranking: Ranking) -> list[str]:
    """Say what Friedman's test and the post-hoc tests show, and what they cannot."""
    notes = []
    if math.isfinite(ranking.p):
        differ = "the models differ" if ranking.p < ranking.alpha else "no difference between the models is shown"
        notes.append(
            f"Friedman: χ² = {ranking.statistic:.2f} with {len(ranking.means.columns) - 1} degrees of freedom, "
            f"{p_text(ranking.p)}: {differ}."
        )
    tests = len(ranking.posthoc)
    notes.append(
        f"Rank 1 is best; ties share their mean rank. Two models differ significantly if the signed-rank test over datasets has "
        f"a Holm p < {ranking.alpha:g}, over {_number_of(tests, 'pair')} of models."
    )
    if ranking.smallest_p >= ranking.alpha:
        notes.append(
            f"With {len(ranking.means)} datasets and {_number_of(tests, 'pair')} no two models can be told apart: "
            "even a model that wins on every dataset has a Holm p of "
            f"{ranking.smallest_p:.2f}. Rank fewer models (--models) or add datasets."
        )
    return notes + [f"Left out: {text}." for text in ranking.left_out]


def posthoc_table(ranking: Ranking) -> Table:
    """Return one row per two models, smallest p first."""
    posthoc = ranking.posthoc.sort_values("p", kind="stable")
    rows = [
        Row(
            (pair_name(row["model"], row["other"]),),
            [signed_cell(row["difference"], ranking.measure.digits), p_cell(row["p"]), p_cell(row["p_holm"])],
        )
        for row in posthoc.to_dict("records")
    ]
    notes = [
        f"Signed-rank tests over {len(ranking.means)} datasets; Holm p: adjusted over {_number_of(len(rows), 'pair')}."
    ]
    return Table("Every two models", ["Pair"], ["Mean diff.", "Wilcoxon p", "Holm p"], rows, notes, posthoc)


def _number_of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
