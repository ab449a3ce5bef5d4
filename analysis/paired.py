"""Two models on the same seeds: statistics of their paired differences.

The formulas are written out because a sweep needs thousands of tests; the tests of this module compare them with scipy and
statsmodels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from lcat_core.errors import ResultsError

POWER = 0.8
#: Differences whose squares would vanish in double precision.
NEGLIGIBLE = 1e-150
#: Runs store metrics in single precision. Two differences of values up to 1 that are equal by count differ by less than this.
SINGLE_PRECISION = 2.0**-22


@dataclass(frozen=True)
class PairedTest:
    """Model minus baseline over ``n`` pairs, in the unit of the values.

    Attributes:
        n: Number of pairs.
        difference: Mean of the differences.
        sd: Their standard deviation (ddof 1).
        error: Standard error of the mean difference: sd √(1/n + overlap).
        t, p: Two-sided paired t-test; but see ``constant``.
        ci_low, ci_high: Confidence interval of the mean difference, at level 1 − α.
        p_wilcoxon: Wilcoxon signed-rank test, exact for few pairs; 1 if every difference is zero.
        effect_size: d_z = difference / sd (±inf if the sd is 0 and the difference is not).
        detectable: The smallest true difference that so many pairs with this sd detect with 80 % power; None if all differences
            are equal, because then their spread is unknown.
        p_equivalent: Two one-sided t-tests against ±margin; a small value means that the difference is smaller than the margin.
            NaN without a margin.
        constant: All differences are equal. A t-test has no spread to work with then (t = ±inf, p = 0 for any number of pairs),
            so ``p`` is the exact signed-rank p, 2^(1−n), instead; ``p_equivalent`` is its one-sided counterpart.
    """

    n: int
    difference: float
    sd: float
    error: float
    t: float
    p: float
    ci_low: float
    ci_high: float
    p_wilcoxon: float
    effect_size: float
    detectable: float | None
    p_equivalent: float
    constant: bool


def paired_test(
    model: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    alpha: float = 0.05,
    margin: float | None = 0.5,
    overlap: float = 0.0,
) -> PairedTest:
    """Compare two models pair by pair; ``model[i]`` and ``baseline[i]`` share their seed, or their split.

    Args:
        overlap: Test nodes / training nodes, if the pairs are random splits of one dataset. Such splits share nodes, so their
            differences are correlated, and 1/n underestimates the variance of the mean: the corrected resampled t-test of
            Nadeau and Bengio (2003) uses 1/n + overlap. The signed-rank test has no such correction; its p is NaN.

    Raises:
        ResultsError: The lengths differ, there are fewer than two pairs, or a value is not finite.
    """
    x, y = np.asarray(model, dtype=float), np.asarray(baseline, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise ResultsError(f"a paired test needs the same number of values of both models, got {x.size} and {y.size}")
    if x.size < 2:
        raise ResultsError(f"a paired test needs at least 2 pairs, got {x.size}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ResultsError("a paired test needs finite values, got NaN or infinity")
    differences = merge_equal_magnitudes(x - y, SINGLE_PRECISION * max(np.abs(x).max(), np.abs(y).max()))
    differences = np.where(np.abs(differences) < NEGLIGIBLE, 0.0, differences)
    n = differences.size
    mean = float(differences.mean())
    p_wilcoxon = signed_rank_p(differences)
    if np.ptp(differences) == 0:
        return _constant(n, mean, p_wilcoxon, _equivalence_p(differences, 0.0, margin))
    sd = float(differences.std(ddof=1))
    error = sd * math.sqrt(1 / n + overlap)
    t = mean / error
    half = float(special.stdtrit(n - 1, 1 - alpha / 2)) * error
    return PairedTest(
        n=n,
        difference=mean,
        sd=sd,
        error=error,
        t=t,
        p=float(2 * special.stdtr(n - 1, -abs(t))),
        ci_low=mean - half,
        ci_high=mean + half,
        p_wilcoxon=math.nan if overlap else p_wilcoxon,
        effect_size=mean / sd,
        detectable=detectable_effect(n, alpha) * error * math.sqrt(n),
        p_equivalent=_equivalence_p(differences, error, margin),
        constant=False,
    )


def merge_equal_magnitudes(differences: np.ndarray, tolerance: float) -> np.ndarray:
    """Make differences equal whose magnitudes differ by no more than ``tolerance``, and those equal to zero zero.

    Ties, zeros and constant differences are recognised by equality, which rounding errors would destroy. One test node more or
    less is far above the tolerance, even for two million nodes.
    """
    magnitudes = np.abs(differences)
    order = np.argsort(magnitudes)
    merged = np.zeros_like(magnitudes)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or magnitudes[order[end]] - magnitudes[order[start]] > tolerance:
            group = order[start:end]
            merged[group] = magnitudes[group].mean()
            start = end
    merged[merged <= tolerance] = 0.0
    return np.copysign(merged, differences)


def _equivalence_p(differences: np.ndarray, error: float, margin: float | None) -> float:
    if margin is None:
        return math.nan
    if error == 0:
        # One-sided exact signed-rank tests against ±margin: all differences are on the same side of both.
        return 0.5**differences.size if abs(differences[0]) < margin else 1.0
    # The larger p of the two one-sided tests is that of the nearer end.
    return float(special.stdtr(differences.size - 1, -(margin - abs(differences.mean())) / error))


def signed_rank_p(differences: np.ndarray) -> float:
    """Return Wilcoxon's p without zeros: exact for up to 50 differences, or 13 if some are tied, as in scipy."""
    nonzero = differences[differences != 0]
    if nonzero.size == 0:
        return 1.0
    ranks = stats.rankdata(np.abs(nonzero))
    has_ties = len(set(ranks)) < nonzero.size
    if nonzero.size > (13 if has_ties else 50):
        return float(stats.wilcoxon(nonzero).pvalue)
    # Twice the ranks are whole numbers, even with ties. Add them one by one, with either sign, to the distribution of the sum.
    doubled = np.rint(2 * ranks).astype(int)
    counts = np.zeros(doubled.sum() + 1)
    counts[0] = 1
    for rank in doubled:
        counts[rank:] += counts[: counts.size - rank].copy()
    positive = doubled[nonzero > 0].sum()
    tail = min(counts[: positive + 1].sum(), counts[positive:].sum())
    return float(min(2 * tail / counts.sum(), 1.0))


def _constant(n: int, difference: float, p_wilcoxon: float, p_equivalent: float) -> PairedTest:
    infinite = math.copysign(math.inf, difference) if difference else 0.0
    return PairedTest(
        n=n,
        difference=difference,
        sd=0.0,
        error=0.0,
        t=infinite,
        p=p_wilcoxon,
        ci_low=difference,
        ci_high=difference,
        p_wilcoxon=p_wilcoxon,
        effect_size=infinite,
        detectable=None,
        p_equivalent=p_equivalent,
        constant=True,
    )


@lru_cache(maxsize=256)
def detectable_effect(n: int, alpha: float = 0.05, power: float = POWER) -> float:
    """Return the smallest effect size d_z that a two-sided paired t-test over ``n`` pairs detects with this power."""
    high = 1.0
    while power_of_test(high, n, alpha) < power:
        high *= 2
    return float(optimize.brentq(lambda effect: power_of_test(effect, n, alpha) - power, 0.0, high, xtol=1e-10))


def power_of_test(effect: float, n: int, alpha: float) -> float:
    """Return the power of a two-sided paired t-test over ``n`` pairs if the true effect size d_z is ``effect``.

    It is the probability given the sd, integrated over the distribution of the sd.

    The non-central t distribution has the same integral, but scipy's and statsmodels' are wrong for few pairs and small α.
    """
    critical, shift = stats.t.isf(alpha / 2, n - 1), effect * math.sqrt(n)
    lowest, *inner, highest = _sd_quantiles(n)
    # Given the sd, the probability falls from 1 to 0 near sd = shift / critical: the integral needs its limits there.
    inner += [(shift + step) / critical for step in (-8, -3, 0, 3, 8)]
    limits = np.array(sorted({lowest, *(sd for sd in inner if lowest < sd < highest), highest}))
    middle, half = (limits[1:] + limits[:-1]) / 2, np.diff(limits) / 2
    nodes, weights = _GAUSS_LEGENDRE
    sd = middle + half * nodes[:, None]
    given_sd = special.ndtr(shift - critical * sd) + special.ndtr(-shift - critical * sd)
    scale = math.sqrt(n - 1)
    return float((weights[:, None] * given_sd * stats.chi.pdf(sd * scale, n - 1) * scale * half).sum())


_GAUSS_LEGENDRE = np.polynomial.legendre.leggauss(64)


@lru_cache(maxsize=256)
def _sd_quantiles(n: int) -> list[float]:
    """Return limits of the distribution of the sd of ``n`` differences with sd 1, close where it is steep."""
    tails = 10.0 ** -np.array([15, 9, 5, 2, 0.6])
    lower = stats.chi.ppf(tails, n - 1)
    upper = stats.chi.isf(tails, n - 1)
    return sorted((np.concatenate([lower, upper]) / math.sqrt(n - 1)).tolist())
