"""Simulated type I error and power of every test that the analysis prints: ``python docs/error_rates.py [--repetitions N]``.

Writes docs/error_rates.csv and the table of docs/analysis.md. Every row draws data for which the null hypothesis holds (type I
error), and data with a true difference (power), and counts how often p < 0.05.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from statsmodels.stats.multitest import multipletests
from tqdm import tqdm

from lcat_analysis.paired import paired_test, signed_rank_p
from lcat_analysis.published import published_degrees, published_results
from lcat_analysis.random_effects import moderate_variances, random_effects
from lcat_analysis.ranking import rank_means
from lcat_analysis.trend_fit import fit_line, permutation_p

DOCS = Path(__file__).parent
ALPHA = 0.05
BEGIN, END = "<!-- error rates: begin -->\n", "<!-- error rates: end -->\n"
#: Names of tests → whether each rejected.
Outcome = dict[str, bool]
Draw = Callable[[np.random.Generator, float], Outcome]


class Setting(NamedTuple):
    """One kind of data: ``draw`` simulates it once, with a true difference of 0 or ``difference``, and tests it."""

    question: str
    data: str
    draw: Draw
    difference: float
    recommended: tuple[str, ...]


def seeds(n: int, rounded: bool) -> Draw:
    """One dataset: the differences of ``n`` seeds, as they are or in whole nodes of 400."""

    def draw(rng: np.random.Generator, difference: float) -> Outcome:
        model, baseline = rng.normal(80 + difference, 1.0, n), rng.normal(80, 1.0, n)
        if rounded:
            model, baseline = np.round(model * 4) / 4, np.round(baseline * 4) / 4
        test = paired_test(model, baseline)
        return {"paired t-test": test.p < ALPHA, "Wilcoxon": test.p_wilcoxon < ALPHA}

    return draw


def equivalence(n: int) -> Draw:
    """The equivalence test: its null hypothesis is a difference at the margin, 0.5 points."""

    def draw(rng: np.random.Generator, difference: float) -> Outcome:
        test = paired_test(rng.normal(0.5 - difference, 0.4, n), np.zeros(n), margin=0.5)
        return {"equivalence (two one-sided t-tests)": test.p_equivalent < ALPHA}

    return draw


def many_tests(n: int, tests: int) -> Draw:
    """A whole table: whether Holm's correction lets any of ``tests`` reject, of which all are null, or all have the difference."""

    def draw(rng: np.random.Generator, difference: float) -> Outcome:
        p = [paired_test(rng.normal(difference, 1.0, n), np.zeros(n)).p for _ in range(tests)]
        corrected = multipletests(p, method="holm")[1]
        return {"any “better”, uncorrected": min(p) < ALPHA, "any “better”, Holm": min(corrected) < ALPHA}

    return draw


def splits(n: int, seeds: int) -> Draw:
    """Random 60/20/20 splits of one dataset: two nearest-centroid classifiers, each with its own equally good half of the features.

    A seed adds noise to the centroids. The question is whether the classifiers differ on datasets of this kind and size.
    """
    nodes, features, train, test_from = 250, 5, 150, 200

    def draw(rng: np.random.Generator, difference: float) -> Outcome:
        labels = rng.integers(2, size=nodes)
        signal = np.repeat([0.35 * (1 + difference), 0.35], features)
        x = rng.normal(size=(nodes, 2 * features)) + np.where(labels[:, None] == 1, 1, -1) * signal
        accuracy = np.empty((2, n, seeds))
        for split in range(n):
            order = rng.permutation(nodes)
            fit, held_out = order[:train], order[test_from:]
            for model in range(2):
                columns = x[:, model * features : (model + 1) * features]
                centre = [columns[fit][labels[fit] == c].mean(axis=0) for c in (0, 1)]
                direction = centre[1] - centre[0]
                noisy = direction + rng.normal(0, 0.15, (seeds, features))
                middle = (centre[0] + centre[1]) / 2
                predicted = (columns[held_out] - middle) @ noisy.T > 0
                accuracy[model, split] = 100 * (predicted == labels[held_out, None]).mean(axis=0)
        means = accuracy.mean(axis=2)
        overlap = (nodes - test_from) / train
        return {
            "pooled runs (--unit run)": paired_test(accuracy[0].ravel(), accuracy[1].ravel()).p < ALPHA,
            "t-test of split means, uncorrected": paired_test(*means).p < ALPHA,
            "corrected resampled t-test (--unit split)": paired_test(*means, overlap=overlap).p < ALPHA,
        }

    return draw


def pairs_across(datasets: int, n: int, tau: float) -> Draw:
    """One pair over datasets whose noise differs; the true difference varies between datasets with standard deviation ``tau``."""

    def draw(rng: np.random.Generator, difference: float) -> Outcome:
        sd = np.exp(rng.normal(0, 0.7, datasets))
        true = rng.normal(difference, tau, datasets)
        values = true[:, None] + rng.normal(size=(datasets, n)) * sd[:, None]
        y, variance = values.mean(axis=1), values.var(axis=1, ddof=1)
        moderated = moderate_variances(variance, np.full(datasets, n - 1))
        pooled, naive = (random_effects(y, np.sqrt(v / n)) for v in (moderated, variance))
        return {
            "Wilcoxon over datasets": signed_rank_p(y) < ALPHA,
            "t-test of the mean over datasets": paired_test(y, np.zeros(datasets)).p < ALPHA,
            "pooled (random effects, Knapp–Hartung)": pooled is not None and pooled.p[0] < ALPHA,
            "the same without moderated errors": naive is not None and naive.p[0] < ALPHA,
        }

    return draw


def ranks_across(datasets: int, models: int) -> Draw:
    """Several equally good models over datasets of different level; under the alternative the first is better."""

    def draw(rng: np.random.Generator, difference: float) -> Outcome:
        values = rng.normal(80, 10, (datasets, 1)) + rng.normal(size=(datasets, models)) * np.exp(
            rng.normal(0, 0.7, (datasets, 1))
        )
        values[:, 0] += difference
        ranking = rank_means(pd.DataFrame(values))
        return {"Friedman": ranking.p < ALPHA, "any post-hoc Wilcoxon, Holm": ranking.posthoc["p_holm"].min() < ALPHA}

    return draw


def trends(n_seeds: int, *, log_degree: bool) -> Draw:
    """Eleven datasets with the degrees of the paper, whose noise and true differences vary independently of the degree."""
    names = published_results().query("experiment == 'real'")["dataset"].unique()
    degrees = np.array([published_degrees()[name] for name in names])
    x = np.log2(degrees) if log_degree else degrees
    scale = (x - x.mean()) / x.std()

    def draw(rng: np.random.Generator, difference: float) -> Outcome:
        sd = np.exp(rng.normal(-0.5, 0.7, len(x)))
        true = 0.3 + difference * scale + rng.normal(0, 0.4, len(x))
        values = true[:, None] + rng.normal(size=(len(x), n_seeds)) * sd[:, None]
        y, variance = values.mean(axis=1), values.var(axis=1, ddof=1)
        errors = np.sqrt(moderate_variances(variance, np.full(len(x), n_seeds - 1)) / n_seeds)
        line, meta = fit_line(x, y), random_effects(y, errors, x)
        ranks = np.argsort(np.argsort(x)).astype(float), np.argsort(np.argsort(y)).astype(float)
        return {
            "least squares, HC3": line is not None and line.p is not None and line.p < ALPHA,
            "permutation test": permutation_p(x, y) < ALPHA,
            "Spearman, permutation": permutation_p(*ranks) < ALPHA,
            "meta-regression, Knapp–Hartung": meta is not None and meta.p[1] < ALPHA,
        }

    return draw


def settings() -> Iterator[Setting]:
    """Every question that a command answers, with the data it is asked about."""
    t_and_rank = ("paired t-test", "Wilcoxon")
    for n, difference in ((3, 3.0), (5, 2.0), (10, 1.3)):
        yield Setting("one dataset, new seeds", f"{n} seeds", seeds(n, rounded=False), difference, t_and_rank)
    yield Setting("one dataset, new seeds", "10 seeds, whole nodes", seeds(10, rounded=True), 1.3, t_and_rank)
    yield Setting(
        "one dataset, equivalence", "10 seeds", equivalence(10), 0.5, ("equivalence (two one-sided t-tests)",)
    )
    yield Setting("a table of 11 tests", "10 seeds", many_tests(10, 11), 1.0, ("any “better”, Holm",))
    corrected = ("corrected resampled t-test (--unit split)",)
    for n in (5, 10):
        yield Setting("one dataset, new splits", f"{n} splits × 3 seeds", splits(n, 3), 0.6, corrected)
    over = ("Wilcoxon over datasets", "t-test of the mean over datasets", "pooled (random effects, Knapp–Hartung)")
    for datasets, n, tau in ((6, 5, 0.5), (11, 3, 0.5), (11, 10, 0.0), (11, 10, 0.5), (11, 10, 1.5)):
        data = f"{datasets} datasets × {n} seeds, τ = {tau:g}"
        yield Setting("one pair, new datasets", data, pairs_across(datasets, n, tau), 0.9, over)
    ranked = ("Friedman", "any post-hoc Wilcoxon, Holm")
    yield Setting("all models, new datasets", "11 datasets, 7 models", ranks_across(11, 7), 2.0, ranked)
    trend = ("least squares, HC3", "permutation test", "Spearman, permutation", "meta-regression, Knapp–Hartung")
    for log_degree in (False, True):
        name = "trend with log degree" if log_degree else "trend with the degree"
        yield Setting(name, "11 datasets × 10 seeds", trends(10, log_degree=log_degree), 0.4, trend)


def simulate(repetitions: int, seed: int = 0) -> pd.DataFrame:
    """Return one row per test and setting: type I error and power."""
    rows = []
    gc.freeze()  # statsmodels collects garbage in every correction, which takes a quarter of a second otherwise
    for setting in tqdm(list(settings()), unit="setting"):
        rates = []
        for difference in (0.0, setting.difference):
            rng = np.random.default_rng(seed)
            rates.append(pd.DataFrame([setting.draw(rng, difference) for _ in range(repetitions)]).mean())
        for test in rates[0].index:
            row = {"question": setting.question, "data": setting.data, "test": test}
            row |= {"type_1_error": rates[0][test], "power": rates[1][test], "difference": setting.difference}
            rows.append(row | {"recommended": test in setting.recommended})
    return pd.DataFrame(rows)


def markdown(table: pd.DataFrame, repetitions: int) -> str:
    """Return the table of docs/analysis.md; tests that are not recommended for the data are in italics."""
    lines = ["| question | data | test | type I error | power |", "|---|---|---|---:|---:|"]
    for row in table.to_dict("records"):
        test = row["test"] if row["recommended"] else f"*{row['test']}*"
        cells = (
            row["question"],
            row["data"],
            test,
            f"{100 * row['type_1_error']:.1f} %",
            f"{100 * row['power']:.0f} %",
        )
        lines.append(f"| {' | '.join(cells)} |")
    note = f"\n{repetitions} repetitions each: a true 5 % is within {100 * 2 * (0.05 * 0.95 / repetitions) ** 0.5:.1f} of it.\n"
    return "\n".join(lines) + "\n" + note


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3000)
    repetitions = parser.parse_args().repetitions
    table = simulate(repetitions)
    table.to_csv(DOCS / "error_rates.csv", index=False, float_format="%.4f", lineterminator="\n")
    page = DOCS / "analysis.md"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    page.write_text(before + BEGIN + markdown(table, repetitions) + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
