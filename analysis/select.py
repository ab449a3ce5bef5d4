"""Which runs represent a model: those with the best mean validation metric. The test set never selects anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from lcat_analysis.load import Results
from lcat_analysis.metrics import Measure, check_metric, find_measure, first_metric
from lcat_analysis.repetitions import Repetitions
from lcat_analysis.run_config import REPETITIONS
from lcat_analysis.table_order import model_order
from lcat_core.errors import ResultsError, did_you_mean

#: A dataset and the values of the variants, in their order.
Condition = tuple[Any, ...]

#: Stands for a hyperparameter that a run does not set.
NOT_SET = "–"


@dataclass
class Selection:
    """The chosen runs.

    Attributes:
        runs: The rows of ``Results.runs`` that belong to the chosen configurations, with a column ``value``: the test metric,
            in per cent if it is a fraction. ``diverged`` says whether it is recorded, but not a number.
        choices: One row per configuration that competed: mean validation metric, number of runs, and which one won.
        measure: The metric.
        by: The validation column that decided, such as ``val.accuracy``.
        by_measure: Its metric.
        over: The hyperparameters that were chosen by validation.
        variants: The other hyperparameters that differ within a model and a dataset (heads, initialisation, noise…).
        models: In the order of tables.
        datasets: By falling average degree, those of unknown degree last.
        match: Hyperparameters that a model and its baseline must share.
        axes: The axes of the grid, for the order of their values.
        varied: For each model, the variants of which it has, or should have, several values.
        other_measures: The metric of each dataset that does not have ``measure`` (ogbn-proteins has no accuracy).
    """

    runs: pd.DataFrame
    choices: pd.DataFrame
    measure: Measure
    by: str
    by_measure: Measure
    over: list[str]
    variants: list[str]
    models: list[str]
    datasets: list[str]
    match: list[str]
    axes: dict[str, list[Any]]
    varied: dict[str, set[str]]
    other_measures: dict[str, Measure] = field(default_factory=dict)

    @property
    def metric(self) -> str:
        """Name of the metric, without its split."""
        return self.measure.name

    def measure_of(self, dataset: str) -> Measure:
        """Return the metric of a dataset."""
        return self.other_measures.get(dataset, self.measure)

    @cached_property
    def degrees(self) -> dict[str, float]:
        """Average degree by dataset; NaN if unknown."""
        return {str(name): float(degree) for name, degree in self.runs.groupby("dataset")["avg_degree"].first().items()}

    @cached_property
    def test_per_train(self) -> dict[str, float]:
        """Test nodes / training nodes by dataset, the largest of its splits; NaN if not recorded."""
        return {str(name): float(ratio) for name, ratio in self.runs.groupby("dataset")["test_per_train"].max().items()}

    @cached_property
    def _cells(self) -> dict[tuple[Any, ...], Repetitions]:
        """The runs of each (model, dataset, *variant)."""
        runs = self.runs.iloc[np.lexsort((self.runs["seed"], self.runs["split_seed"]))]
        keys = ["model", "dataset", *self.variants]
        columns = [runs[name].to_numpy() for name in ("split_seed", "seed", "value", "diverged")]
        indices: Any = runs[keys].groupby(keys, sort=False, dropna=False).indices
        return {key: Repetitions(*(column[rows] for column in columns)) for key, rows in indices.items()}

    @cached_property
    def _variants(self) -> dict[tuple[str, str], list[Condition]]:
        """The variants that occur, by model and dataset."""
        found: dict[tuple[str, str], list[Condition]] = {}
        for model, dataset, *variant in self._cells:
            found.setdefault((model, dataset), []).append(tuple(variant))
        return found

    def cell(self, model: str, condition: Condition) -> Repetitions | None:
        """Return the runs of a model under a condition (a dataset and the values of the variants), or None."""
        return self._cells.get((model, *condition))

    def values(self, model: str, condition: Condition) -> pd.Series:
        """Return the test metric of one cell, indexed by (split_seed, seed)."""
        cell = self.cell(model, condition)
        return Repetitions.empty().series() if cell is None else cell.series()

    def runs_of(self, model: str, condition: Condition) -> pd.DataFrame:
        """Return the rows of ``runs`` of one cell."""
        runs = self.runs[(self.runs["model"] == model) & (self.runs["dataset"] == condition[0])]
        for key, value in self.settings(condition).items():
            runs = runs[runs[key] == value]
        return runs

    def variants_of(self, model: str, dataset: str) -> list[dict[str, Any]]:
        """Return the settings under which a model has runs on a dataset."""
        return [dict(zip(self.variants, variant, strict=True)) for variant in self._variants.get((model, dataset), [])]

    def conditions(self) -> list[Condition]:
        """Return every (dataset, *variant) that occurs: datasets by degree, variants in the order of the grid."""
        rows = self.runs[["dataset", *self.variants]].drop_duplicates()
        rank = {dataset: i for i, dataset in enumerate(self.datasets)}
        conditions = [tuple(row) for row in rows.itertuples(index=False)]

        def position(condition: Condition) -> tuple[Any, ...]:
            listed = (self.axes.get(key, []) for key in self.variants)
            pairs = zip(listed, condition[1:], strict=True)
            return (
                rank[condition[0]],
                *((v not in axis, axis.index(v) if v in axis else sort_key(v)) for axis, v in pairs),
            )

        return sorted(conditions, key=position)

    def settings(self, condition: Condition) -> dict[str, Any]:
        """Return the values of the variants by key."""
        return dict(zip(self.variants, condition[1:], strict=True))


def select(
    results: Results,
    metric: str | None = None,
    over: Sequence[str] | None = None,
    *,
    higher_is_better: bool | None = None,
    scale: str | None = None,
) -> Selection:
    """Choose, for each model, dataset and variant, the configuration with the best mean validation metric.

    Only configurations with the most finished runs compete; otherwise one that has finished only its lucky seeds could win. Of
    equal configurations the one with the smallest value wins.

    Args:
        metric: Name of the test metric; by default the one that the grid selects by, else the first known one.
        over: Hyperparameters to choose by validation; by default the grid's ``select.over``.
        higher_is_better, scale: Direction and `Scale` of the metric; by default those of its row, or what the grid declares.

    Raises:
        ResultsError: There is no finished run, the metric or a key of ``over`` is unknown, or the values do not fit the scale.
    """
    if results.runs.empty:
        counts = ", ".join(f"{n} {state}" for state, n in results.counts().items())
        first = results.problems.head(1).to_dict("records")
        why = "".join(f"; {problem['run_id']}: {problem['detail']}" for problem in first)
        raise ResultsError(f"no finished run in {results.name}: {counts}{why}")
    declared, declared_metrics = results.grid["select"], results.declared_metrics
    by_declared = str(declared["by"] or "")
    named = metric is not None
    if metric is None:
        name = by_declared.removeprefix("val.")
        metric = name if name in results.metrics else first_metric(results.metrics)
    check_metric(metric, results.metrics)
    measure = find_measure(metric, declared_metrics, higher_is_better=higher_is_better, scale=scale)
    over = declared["over"] if over is None else _check_over(results, over)
    varying = varying_parameters(results)
    chosen_keys = [key for key in over if key in varying]
    by = by_declared if by_declared.startswith("val.") else f"val.{metric}"
    by_measure = measure if by == f"val.{metric}" else find_measure(by, declared_metrics)
    if chosen_keys and by not in results.runs:
        raise ResultsError(f"no column {by!r} to select {', '.join(chosen_keys)} by: only the test set was scored")
    variants = [key for key in varying if key not in chosen_keys]
    runs = results.runs.copy()
    runs["value"] = runs[f"test.{metric}"] * measure.factor
    others = {} if named else _other_measures(results, measure)
    for dataset, other in others.items():
        rows = runs["dataset"] == dataset
        runs.loc[rows, "value"] = runs.loc[rows, f"test.{other.name}"] * other.factor
        if by in runs and f"val.{other.name}" in runs:
            runs.loc[rows, by] = runs.loc[rows, f"val.{other.name}"]
    columns = [f"test.{others.get(dataset, measure).name}" for dataset in runs["dataset"]]
    runs["diverged"] = [column in names for column, names in zip(columns, runs["diverged"], strict=True)]
    for used in (measure, *others.values()):
        used.check(runs.set_index("run_id")[f"test.{used.name}"])
    for key in [*chosen_keys, *variants, *(k for k in results.grid["match"] if k in runs)]:
        runs[key] = runs[key].astype(object).where(runs[key].notna(), NOT_SET)
    choices = _rank(runs if by in runs else runs.assign(**{by: float("nan")}), by, by_measure, chosen_keys, variants)
    chosen = choices.loc[choices["chosen"], ["model", "dataset", *variants, *chosen_keys]]
    picked = runs.merge(chosen, on=["model", "dataset", *variants, *chosen_keys], how="inner")
    return Selection(
        runs=picked,
        choices=choices,
        measure=measure,
        by=by,
        by_measure=by_measure,
        over=chosen_keys,
        variants=variants,
        models=model_order(picked["model"].unique(), results.grid["models"]),
        datasets=_datasets_by_degree(picked),
        match=[key for key in results.grid["match"] if key in picked],
        axes=results.grid["axes"],
        varied=_varied(results, picked, variants),
        other_measures=others,
    )


def _other_measures(results: Results, measure: Measure) -> dict[str, Measure]:
    """Return the datasets of which no run has the metric, and the comparable metric that they have instead."""
    known = {
        name: find_measure(name, results.declared_metrics) for name in results.metrics if results.is_described(name)
    }
    comparable = [name for name, m in known.items() if (m.sign, m.unit) == (measure.sign, measure.unit)]
    recorded = results.runs.groupby("dataset")[[f"test.{name}" for name in {*comparable, measure.name}]].count() > 0
    found = {}
    for dataset, has in recorded.iterrows():
        present = [name for name in comparable if has[f"test.{name}"]]
        if present and not has[f"test.{measure.name}"]:
            found[str(dataset)] = known[first_metric(present)]
    return found


def varying_parameters(results: Results) -> list[str]:
    """Return the hyperparameters that take several values within one model on one dataset."""
    keys = [key for key in results.param_keys if key not in REPETITIONS]
    grouped = results.runs.groupby(["model", "dataset"], sort=False)
    return [key for key in keys if grouped[key].nunique(dropna=False).max() > 1]


def _varied(results: Results, runs: pd.DataFrame, variants: list[str]) -> dict[str, set[str]]:
    """Return the variants of each model with several values, including runs of the grid that are not finished."""
    records = [record for sweep in results.sweeps for record in sweep.records]
    found = {}
    for model, own in runs.groupby("model"):
        params = [record.params for record in records if record.model == model]
        found[str(model)] = {key for key in variants if len({*own[key], *(p[key] for p in params if key in p)}) > 1}
    return found


def sort_key(value: object) -> tuple[int, float, str]:
    """Sort numbers by size, then everything else by name; never an error on mixed types."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (0, float(value), "")
    return (1, 0.0, str(value))


def _check_over(results: Results, over: Sequence[str]) -> list[str]:
    for key in over:
        if key not in results.param_keys:
            listed = ", ".join(results.param_keys) or "nothing"
            hint = did_you_mean(key, results.param_keys)
            raise ResultsError(f"cannot select over {key!r}: no run sets it; they set {listed}{hint}")
    return list(over)


def _rank(runs: pd.DataFrame, by: str, measure: Measure, over: list[str], variants: list[str]) -> pd.DataFrame:
    cell = ["model", "dataset", *variants]
    grouped = runs.groupby([*cell, *over], sort=False)[by]
    table = grouped.agg(n="size", val_mean="mean", val_sd="std", val_count="count").reset_index()
    # With a diverged run the mean is NaN: a configuration must not win because it lost its worst run.
    table["val_mean"] = table["val_mean"].where(table["val_count"] == table["n"])
    table = table.drop(columns="val_count")
    table = table.sort_values(over, key=lambda c: c.map(sort_key), kind="stable") if over else table
    score = measure.sign * table["val_mean"]
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
