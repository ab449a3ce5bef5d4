"""Which runs stand for a model: those of the best mean validation metric. The test set selects nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from lcat_analysis.load import Results
from lcat_analysis.metrics import check_metric, first_metric, lower_is_better, scale
from lcat_analysis.table_order import model_order
from lcat_core.errors import ResultsError, did_you_mean

# Repetitions of one experiment, never another configuration.
REPEATED = ("seed", "dataset.split_seed")


@dataclass
class Selection:
    """The runs that were chosen.

    Attributes:
        runs: the tidy table's rows that belong to the chosen configurations, with a column ``value``: the
            test metric, in per cent where it is a fraction.
        choices: a row per configuration that competed: mean validation metric, number of runs, who won.
        metric: name of the metric, without its split.
        by: the validation column that decided.
        over: the hyperparameters that were cross-validated.
        variants: the other hyperparameters that differ within a model and a dataset (heads, initialisation,
            noise…).
        models: in table order.
        datasets: by falling average degree; the unknown ones last.
        match: hyperparameters that a model and its baseline must share.
        axes: the grid's axes, for the order of their values.
        varied: model → the variants of which it has, or should have, several values.
        other_metrics: dataset → its metric, where that is not ``metric`` (ogbn-proteins has no accuracy).
    """

    runs: pd.DataFrame
    choices: pd.DataFrame
    metric: str
    by: str
    over: list[str]
    variants: list[str]
    models: list[str]
    datasets: list[str]
    match: list[str]
    axes: dict[str, list]
    varied: dict[str, set[str]]
    other_metrics: dict[str, str] = field(default_factory=dict)

    def metric_of(self, dataset: str) -> str:
        """The metric that a dataset's runs are valued by."""
        return self.other_metrics.get(dataset, self.metric)

    def values(self, model: str, dataset: str, variant: Sequence[object] = ()) -> pd.Series:
        """The test metric of one cell, indexed by (split_seed, seed)."""
        runs = self.runs
        rows = runs[(runs["model"] == model) & (runs["dataset"] == dataset)]
        for key, wanted in zip(self.variants, variant, strict=True):
            rows = rows[rows[key] == wanted]
        return rows.set_index(["split_seed", "seed"])["value"].sort_index()

    def conditions(self) -> list[tuple]:
        """Every (dataset, *variant) that occurs: datasets by degree, variants as the grid lists them."""
        rows = self.runs[["dataset", *self.variants]].drop_duplicates()
        rank = {dataset: i for i, dataset in enumerate(self.datasets)}
        tuples = [tuple(row) for row in rows.itertuples(index=False)]

        def position(condition: tuple) -> tuple:
            listed = (self.axes.get(key, []) for key in self.variants)
            pairs = zip(listed, condition[1:], strict=True)
            return (
                rank[condition[0]],
                *((v not in axis, axis.index(v) if v in axis else sort_key(v)) for axis, v in pairs),
            )

        return sorted(tuples, key=position)


def select(results: Results, metric: str | None = None, over: Sequence[str] | None = None) -> Selection:
    """Choose, for each model, dataset and variant, the configuration with the best mean validation metric.

    ``over`` defaults to the grid's ``select.over``. Only configurations with the most finished runs
    compete, so that one that has finished its lucky seeds first cannot win; of equals the one of the smallest
    value wins.

    Raises:
        ResultsError: no finished run, unknown metric, or an unknown key in ``over``.
    """
    if results.runs.empty:
        counts = ", ".join(f"{n} {state}" for state, n in results.counts().items())
        first = results.problems.head(1).to_dict("records")
        why = "".join(f"; {problem['run_id']}: {problem['detail']}" for problem in first)
        raise ResultsError(f"no finished run in {results.name}: {counts}{why}")
    declared = results.grid["select"]
    by_declared = str(declared["by"] or "")
    named = metric is not None
    if metric is None:
        name = by_declared.removeprefix("val.")
        metric = name if name in results.metrics else first_metric(results.metrics)
    check_metric(metric, results.metrics)
    over = declared["over"] if over is None else _check_over(results, over)
    varying = varying_parameters(results)
    over = [key for key in over if key in varying]
    by = by_declared if by_declared.startswith("val.") else f"val.{metric}"
    if over and by not in results.runs:
        raise ResultsError(f"no column {by!r} to select {', '.join(over)} by: only the test set was scored")
    variants = [key for key in varying if key not in over]
    runs = results.runs.copy()
    others = {} if named else _other_metrics(runs, results.metrics, metric)
    for dataset, other in others.items():
        rows = runs["dataset"] == dataset
        for column, source in ((f"test.{metric}", f"test.{other}"), (by, f"val.{other}")):
            if source in runs and column in runs:
                runs.loc[rows, column] = runs.loc[rows, source]
    for key in [*over, *variants, *(k for k in results.grid["match"] if k in runs)]:
        runs[key] = runs[key].astype(object).where(runs[key].notna(), "–")
    runs["value"] = runs[f"test.{metric}"] * scale(metric)
    choices = _rank(runs if by in runs else runs.assign(**{by: float("nan")}), by, over, variants)
    chosen = choices.loc[choices["chosen"], ["model", "dataset", *variants, *over]]
    picked = runs.merge(chosen, on=["model", "dataset", *variants, *over], how="inner")
    return Selection(
        runs=picked,
        choices=choices,
        metric=metric,
        by=by,
        over=over,
        variants=variants,
        models=model_order(picked["model"].unique(), results.grid["models"]),
        datasets=_datasets_by_degree(picked),
        match=[key for key in results.grid["match"] if key in picked],
        axes=results.grid["axes"],
        varied=_varied(results, picked, variants),
        other_metrics=others,
    )


def _other_metrics(runs: pd.DataFrame, known: Sequence[str], metric: str) -> dict[str, str]:
    """Datasets of which no run has ``metric``, and the metric that they have instead."""
    found = {}
    for dataset, own in runs.groupby("dataset"):
        if own[f"test.{metric}"].notna().any():
            continue
        present = [name for name in known if own[f"test.{name}"].notna().any() and not lower_is_better(name)]
        if present:
            found[str(dataset)] = first_metric(present)
    return found


def varying_parameters(results: Results) -> list[str]:
    """Hyperparameters that take several values within one model on one dataset."""
    keys = [key for key in results.param_keys if key not in REPEATED]
    grouped = results.runs.groupby(["model", "dataset"], sort=False)
    return [key for key in keys if grouped[key].nunique(dropna=False).max() > 1]


def _varied(results: Results, runs: pd.DataFrame, variants: list[str]) -> dict[str, set[str]]:
    """Of each model the variants with several values, counting runs that are asked for and not finished."""
    records = [record for sweep in results.sweeps for record in sweep.records]
    found = {}
    for model, own in runs.groupby("model"):
        params = [record.params for record in records if record.model == model]
        found[str(model)] = {key for key in variants if len({*own[key], *(p[key] for p in params if key in p)}) > 1}
    return found


def sort_key(value: object) -> tuple:
    """Numbers by size, then everything else by name; never an error on mixed types."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (0, float(value), "")
    return (1, 0.0, str(value))


def _check_over(results: Results, over: Sequence[str]) -> list[str]:
    for key in over:
        if key not in results.param_keys:
            raise ResultsError(
                f"cannot select over {key!r}: no run sets it; they set "
                f"{', '.join(results.param_keys) or 'nothing'}{did_you_mean(key, results.param_keys)}"
            )
    return list(over)


def _rank(runs: pd.DataFrame, by: str, over: list[str], variants: list[str]) -> pd.DataFrame:
    cell = ["model", "dataset", *variants]
    table = (
        runs.groupby([*cell, *over], sort=False)[by]
        # A diverged run makes its configuration's mean not a number: it must not win by having lost its
        # worst run.
        .agg(n="size", val_mean=lambda values: values.mean(skipna=False), val_sd="std")
        .reset_index()
    )
    table = table.sort_values(over, key=lambda c: c.map(sort_key), kind="stable") if over else table
    score = -table["val_mean"] if lower_is_better(by) else table["val_mean"]
    table["complete"] = table["n"] == table.groupby(cell)["n"].transform("max")
    table["score"] = score.where(table["complete"]).fillna(float("-inf"))
    # idxmax takes the first of equals; among equal scores of -inf a complete configuration must come first.
    ordered = table.sort_values("complete", ascending=False, kind="stable")
    winners = ordered.groupby(cell, sort=False)["score"].idxmax()
    table["chosen"] = table.index.isin(winners)
    return table.drop(columns="score").reset_index(drop=True)


def _datasets_by_degree(runs: pd.DataFrame) -> list[str]:
    degree = runs.groupby("dataset")["avg_degree"].first()
    return sorted(degree.index, key=lambda name: (pd.isna(degree[name]), -degree[name], name))
