"""Claims about models as differences that are positive if a claim is true, and verdicts on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from lcat_analysis.cells import signed
from lcat_analysis.lambdas import final_lambdas
from lcat_analysis.paired import paired_test
from lcat_analysis.select import Selection

FEATURES, EDGES, HEADS, INIT = "noise.features", "noise.edges", "lcat.heads", "lcat.init"
ALPHA = 0.05


@dataclass(frozen=True)
class Claim:
    """What the paper says, where it says so, and a difference per seed that is positive if it is true."""

    text: str
    where: str
    difference: Callable[[DatasetRuns], pd.Series]


class DatasetRuns:
    """The chosen runs of one dataset, summarized by seed."""

    def __init__(self, runs: pd.DataFrame, lambdas: pd.DataFrame):
        self.runs = runs
        self.lambdas = lambdas

    @classmethod
    def select(cls, selection: Selection, dataset: str) -> DatasetRuns:
        """Take the runs of one dataset."""
        final = final_lambdas(selection)
        lambdas = final if final.empty else final[final["dataset"] == dataset]
        return cls(selection.runs[selection.runs["dataset"] == dataset], lambdas)

    @property
    def models(self) -> list[str]:
        return list(self.runs["model"].unique())

    def score(self, model: str, **conditions: object) -> pd.Series:
        """Return the test metric by seed, averaged over everything that is not a condition (``heads=1``, ``init="normal"``)."""
        return _filter(self._of_model(model), conditions).groupby("seed")["value"].mean()

    def drop(self, model: str, noise: str) -> pd.Series:
        """Return the points lost between no noise of this kind and the highest level."""
        other = EDGES if noise == FEATURES else FEATURES
        own = self._of_model(model)
        by_level = own[own[other] == 0].pivot_table(index="seed", columns=noise, values="value")
        return by_level[by_level.columns.min()] - by_level[by_level.columns.max()]

    def under_noise(self, model: str, noise: str) -> pd.Series:
        """Return the mean over all levels of this kind of noise above zero."""
        return self._with_noise(model, noise).groupby("seed")["value"].mean()

    def spread_under_noise(self, model: str, noise: str) -> pd.Series:
        """Return the standard deviation over seeds, by level of this kind of noise above zero."""
        return self._with_noise(model, noise).groupby(noise)["value"].std(ddof=1)

    def lead(self, value: Callable[[str], pd.Series], model: str) -> pd.Series:
        """Return the value of a model minus that of the best other model: the one with the best mean.

        The best other model of each seed would be ahead of any model by luck alone, if all were equally good.
        """
        others = [value(name) for name in self.models if name != model]
        return value(model) - max(others, key=lambda values: float(values.mean()))

    def spread(self, model: str) -> pd.Series:
        """Return the standard deviation over all initialisations and numbers of heads, by seed."""
        return self._of_model(model).groupby("seed")["value"].std(ddof=1)

    def gap_between_inits(self, model: str, **conditions: object) -> pd.Series:
        """Return the absolute difference between the two initialisations, by seed."""
        normal, uniform = (self.score(model, init=init, **conditions) for init in ("normal", "uniform"))
        return (normal - uniform).abs()

    def learned(
        self, name: str, layers: Callable[[pd.Series], pd.Series], model: str, **conditions: object
    ) -> pd.Series:
        """Return the mean of λ1 or λ2 over some layers, by seed."""
        own = _filter(self.lambdas[self.lambdas["model"] == model], conditions)
        return own[layers(own["layer"])].groupby("seed")[name].mean()

    def _of_model(self, model: str) -> pd.DataFrame:
        return self.runs[self.runs["model"] == model]

    def _with_noise(self, model: str, noise: str) -> pd.DataFrame:
        own = self._of_model(model)
        return own[own[noise] > 0]


def _filter(table: pd.DataFrame, conditions: dict[str, object]) -> pd.DataFrame:
    keys = {"features": FEATURES, "edges": EDGES, "heads": HEADS, "init": INIT}
    for name, value in conditions.items():
        table = table[table[keys[name]] == value]
    return table


def distance_inside(value: pd.Series, one: pd.Series, other: pd.Series) -> pd.Series:
    """Return how far a model lies inside the interval between two others, negative outside.

    The means decide which of the two is lower, and which end is nearer.
    """
    low, high = sorted((one, other), key=lambda values: float(values.mean()))
    return min((value - low, high - value), key=lambda values: float(values.mean()))


def judge(differences: pd.Series) -> tuple[str, str]:
    """Return the verdict (holds, does not hold, undecided) and the numbers behind it."""
    values = differences.dropna()
    if len(values) < 2:
        return "undecided", f"n = {len(values)}"
    # The paired test knows that equal differences have no spread to decide by.
    test = paired_test(values.to_numpy(float), 0 * values.to_numpy(float), alpha=ALPHA)
    verdict = "undecided" if test.p >= ALPHA else "holds" if test.difference > 0 else "does not hold"
    digits = 3 if values.abs().max() < 1 else 2
    half = test.ci_high - test.difference
    return verdict, f"{signed(test.difference, digits)} ± {half:.{digits}f} (n = {test.n})"


def claims_markdown(claims: list[Claim], selection: Selection | None) -> str:
    """Return a Markdown table with the verdict on every claim for every dataset, or a plain list without results."""
    if selection is None:
        return "\n".join(f"- {claim.text} *({claim.where}; not run here yet)*" for claim in claims)
    datasets = {name: DatasetRuns.select(selection, name) for name in sorted(selection.datasets)}
    lines = [
        "| Claim of the paper | Where | " + " | ".join(datasets) + " |",
        "| :--- | :--- |" + " :--- |" * len(datasets),
    ]
    for claim in claims:
        verdicts = (judge(claim.difference(runs)) for runs in datasets.values())
        cells = (f"**{verdict}** {numbers}" for verdict, numbers in verdicts)
        lines.append(f"| {claim.text} | {claim.where} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
