"""One line through one point per dataset, and how far it can be trusted.

Beside least squares: a permutation test and Spearman's correlation, which need no normal errors; the line without each dataset in
turn; and a meta-regression, which gives datasets with uncertain differences less weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from lcat_analysis.compare import ALPHA
from lcat_analysis.random_effects import random_effects

_PERMUTATIONS = 9999


@dataclass
class Fit:
    """Least squares y = intercept + slope · x; p and interval of the slope with HC3 errors. NaN or None: unknown.

    Attributes:
        p_permutation: Share of the pairings of x and y whose correlation is at least as large; all of them for up to 7 datasets.
        spearman, p_spearman: Rank correlation, with its permutation p.
        loo_low, loo_high: Smallest and largest slope with one dataset left out.
        loo_p, loo_without: The largest p of these lines, and the dataset that it lacks.
        meta_slope, meta_low, meta_high, meta_p: Slope of the meta-regression with weights 1 / (se² + τ²).
    """

    n: int
    slope: float
    intercept: float
    r: float | None
    p: float | None
    ci_low: float | None
    ci_high: float | None
    p_permutation: float = math.nan
    spearman: float = math.nan
    p_spearman: float = math.nan
    loo_low: float = math.nan
    loo_high: float = math.nan
    loo_p: float = math.nan
    loo_without: str = ""
    meta_slope: float = math.nan
    meta_low: float = math.nan
    meta_high: float = math.nan
    meta_p: float = math.nan


def fit_trend(
    x: np.ndarray, y: np.ndarray, names: list[str], errors: np.ndarray | None = None, alpha: float = ALPHA
) -> Fit | None:
    """Fit a line and everything beside it; None with fewer than 3 points or a single x.

    Args:
        names: The datasets.
        errors: Standard errors of ``y`` for the meta-regression; without them, or if one is NaN, there is none.
    """
    fit = fit_line(x, y, alpha)
    if fit is None:
        return None
    _leave_one_out(fit, x, y, names)
    if np.ptp(y) > 0:
        fit.p_permutation = permutation_p(x, y)
        ranks = stats.rankdata(x), stats.rankdata(y)
        fit.spearman = float(np.corrcoef(*ranks)[0, 1])
        fit.p_spearman = permutation_p(*ranks)
    if errors is not None and np.isfinite(errors).all():
        meta = random_effects(y, errors, x, alpha)
        if meta is not None:
            fit.meta_slope, fit.meta_p = float(meta.coefficients[1]), float(meta.p[1])
            fit.meta_low, fit.meta_high = float(meta.low[1]), float(meta.high[1])
    return fit


def fit_line(x: np.ndarray, y: np.ndarray, alpha: float = ALPHA) -> Fit | None:
    """Fit OLS with HC3 errors; None with fewer than 3 points or a single x."""
    result = least_squares(x, y)
    if result is None:
        return None
    low, high = result.conf_int(alpha)[1]
    r = float(np.corrcoef(x, y)[0, 1]) if np.ptp(y) > 0 else None
    intercept, slope = map(float, result.params)
    if not has_interval(x):
        return Fit(len(x), slope, intercept, r, None, None, None)
    return Fit(len(x), slope, intercept, r, float(result.pvalues[1]), float(low), float(high))


def least_squares(x: np.ndarray, y: np.ndarray) -> Any | None:
    """Return statsmodels' result, with HC3 errors; None with fewer than 3 points or a single x."""
    import statsmodels.api as sm

    if len(x) < 3 or np.ptp(x) == 0:
        return None
    return sm.OLS(y, sm.add_constant(x)).fit(cov_type="HC3", use_t=True)


def has_interval(x: np.ndarray) -> bool:
    """Whether HC3 exists: it divides by 1 − leverage, which is 0 if one point alone determines the line."""
    leverage = 1 / len(x) + (x - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()
    return bool((leverage < 1 - 1e-8).all())


def permutation_p(x: np.ndarray, y: np.ndarray) -> float:
    """Return the two-sided p of the correlation if every pairing of x and y were equally likely; the same in every call."""
    centred = x - x.mean()

    def association(y: np.ndarray, axis: int) -> np.ndarray:
        return np.abs(np.tensordot(y, centred, axes=([axis], [0])))

    test = stats.permutation_test(
        (y,),
        association,
        permutation_type="pairings",
        vectorized=True,
        n_resamples=_PERMUTATIONS,
        alternative="greater",
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def _leave_one_out(fit: Fit, x: np.ndarray, y: np.ndarray, names: list[str]) -> None:
    lines = [(name, fit_line(np.delete(x, i), np.delete(y, i))) for i, name in enumerate(names)]
    found = [(name, line) for name, line in lines if line is not None]
    if not found:
        return
    slopes = [line.slope for _, line in found]
    fit.loo_low, fit.loo_high = min(slopes), max(slopes)
    tested = [(line.p, name) for name, line in found if line.p is not None]
    if tested:
        fit.loo_p, fit.loo_without = max(tested)
