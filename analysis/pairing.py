"""How the runs of a model are paired with those of its baseline, and tested; or why they cannot be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from lcat_analysis.paired import PairedTest, paired_test
from lcat_analysis.repetitions import Repetitions
from lcat_analysis.select import Condition, Selection
from lcat_core.errors import ResultsError
from lcat_core.models import display_name


@dataclass(frozen=True)
class Pairing:
    """How runs are paired and tested."""

    selection: Selection
    unit: str
    alpha: float
    margin: float | None
    overlap: float | None
    common_seeds: bool

    def row(self, model: str, baseline: str, condition: Condition, runs: Repetitions) -> dict[str, Any]:
        """Test one pair under one condition; ``runs`` are those of the model."""
        row = {"model": model, "baseline": baseline, "dataset": condition[0], **self.selection.settings(condition)}
        try:
            if np.isnan(runs.values).all() and not runs.diverged.any():
                raise ResultsError(
                    f"{display_name(model)} did not record {self.selection.measure_of(condition[0]).name}"
                )
            other, remark = self._baseline_runs(baseline, condition)
            if self.common_seeds and (lost := _lost_seeds(model, runs.series(), baseline, other.series())):
                remark = f"common seeds only: {lost}"
                runs, other = runs.shared_with(other), other.shared_with(runs)
                if not len(runs.values):
                    raise ResultsError(f"no common seed: {lost}")
            row |= {"model_mean": _mean(runs), "baseline_mean": _mean(other)}
            if not runs.can_be_paired(other):
                _refuse_pairing(model, runs.series(), baseline, other.series())
            if len(runs.values) < 2:
                raise ResultsError(f"only {_name_seeds(runs.series().index)}: a paired test needs at least 2 seeds")
            values, other_values, overlap = runs.values, other.values, 0.0
            if self.unit == "split":
                values, other_values = runs.split_means(), other.split_means()
                if len(values) < 2:
                    raise ResultsError("only one split: a paired test of splits needs at least 2")
                overlap = self._overlap(condition[0])
            test = paired_test(values, other_values, alpha=self.alpha, margin=self.margin, overlap=overlap)
            return row | vars(test) | {"verdict": "", "note": "; ".join(filter(None, (_describe(test), remark)))}
        except ResultsError as error:
            return row | {"n": 0, "verdict": "refused", "note": str(error)}

    def _overlap(self, dataset: str) -> float:
        overlap = self.selection.test_per_train[dataset] if self.overlap is None else self.overlap
        if math.isnan(overlap):
            raise ResultsError(
                "the runs do not record how many nodes they train and test on, which a test of splits needs: "
                "give test nodes / training nodes, for example --overlap 0.25"
            )
        return overlap

    def _baseline_runs(self, baseline: str, condition: Condition) -> tuple[Repetitions, str]:
        """Return the runs of the baseline under the same condition, and a remark if the condition differs.

        It may differ in a hyperparameter of which the baseline has only one value (GCN has one head), unless the grid's
        ``match`` forbids it.
        """
        selection = self.selection
        strict = selection.varied.get(baseline, set()) | set(selection.match)
        wanted = selection.settings(condition)
        shared = {key: value for key, value in wanted.items() if key in strict}
        candidates = [
            found
            for found in selection.variants_of(baseline, condition[0])
            if all(found[key] == value for key, value in shared.items())
        ]
        if not candidates:
            setting = ", ".join(f"{key} = {value}" for key, value in shared.items())
            where = f"{condition[0]} with {setting}" if setting else condition[0]
            raise ResultsError(f"{display_name(baseline)} has no finished run on {where}")
        found = candidates[0]
        other = [f"{key} = {found[key]}" for key, value in wanted.items() if found[key] != value]
        remark = f"baseline with {', '.join(other)}" if other else ""
        runs = selection.cell(baseline, (condition[0], *found.values()))
        assert runs is not None  # variants_of lists only cells with runs
        return runs, remark


def _mean(runs: Repetitions) -> float:
    finite = runs.values[np.isfinite(runs.values)]
    return float(finite.mean()) if finite.size else math.nan


def _refuse_pairing(model: str, values: pd.Series, baseline: str, other: pd.Series) -> NoReturn:
    """Say why runs cannot be paired: what each side lacks, NaN included, or what is there twice."""
    lost = _lost_seeds(model, values, baseline, other)
    raise ResultsError(lost or "several runs share a seed, so they cannot be paired")


def _lost_seeds(model: str, values: pd.Series, baseline: str, other: pd.Series) -> str:
    """Name the seeds that one of the models, or both, have no finite value of."""
    finite, other_finite = values[np.isfinite(values)], other[np.isfinite(other)]
    lacks = []
    for name, mine, theirs in ((model, finite, other_finite), (baseline, other_finite, finite)):
        missing = theirs.index.difference(mine.index)
        if len(missing):
            lacks.append(f"{display_name(name)} lacks {_name_seeds(missing)}")
    diverged = values.index[~np.isfinite(values)]
    if not lacks and len(diverged):
        lacks.append(f"both models diverged on {_name_seeds(diverged)}")
    return "; ".join(lacks)


def _name_seeds(index: pd.Index) -> str:
    texts = []
    for split, seeds in index.to_frame(index=False).groupby("split_seed")["seed"]:
        listed = ", ".join(str(seed) for seed in seeds)
        plural = "s" if len(seeds) > 1 else ""
        texts.append(f"seed{plural} {listed}" + (f" of split {split!s}" if split else ""))
    return " and ".join(texts)


def _describe(test: PairedTest) -> str:
    if test.constant and test.difference:
        return "every difference is the same: p is the exact signed-rank p"
    return "all paired differences are zero" if test.constant else ""
