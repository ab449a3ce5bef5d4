"""Random-effects meta-analysis: one estimate, or one line, from the differences of several datasets.

Every dataset has a difference y with a standard error se. Its true difference varies between datasets with standard deviation τ
around the mean, or around a line. Weights are 1 / (se² + τ²). τ² is that of Paule and Mandel. Intervals and tests are those of
Knapp and Hartung with a t distribution, never narrower than without their correction.

A standard error from a few seeds is itself uncertain, and weights that trust it make the test reject too often. The errors are
therefore moderated first (`moderate_variances`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats


@dataclass(frozen=True)
class RandomEffects:
    """A pooled estimate or a line.

    Attributes:
        n: Number of datasets.
        coefficients: The mean, or intercept and slope; ``errors``, ``p``, ``low`` and ``high`` belong to them.
        tau: Standard deviation of the true differences between datasets.
        i_squared: Share of the variance between the differences that their errors do not explain.
    """

    n: int
    coefficients: np.ndarray
    errors: np.ndarray
    p: np.ndarray
    low: np.ndarray
    high: np.ndarray
    tau: float
    i_squared: float


def random_effects(
    differences: np.ndarray, errors: np.ndarray, x: np.ndarray | None = None, alpha: float = 0.05
) -> RandomEffects | None:
    """Pool differences with their standard errors or, given ``x``, fit a line through them (meta-regression).

    Returns:
        None if an error is not positive, ``x`` has a single value, or there are no more datasets than coefficients.
    """
    y, variance = np.asarray(differences, float), np.asarray(errors, float) ** 2
    design = np.ones((y.size, 1)) if x is None else np.column_stack([np.ones(y.size), np.asarray(x, float)])
    degrees = y.size - design.shape[1]
    if degrees < 1 or not (variance > 0).all() or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    tau2 = _paule_mandel(y, variance, design)
    coefficients, inverse, spread = _weighted_fit(y, 1 / (variance + tau2), design)
    se = np.sqrt(max(spread / degrees, 1.0) * np.diag(inverse))
    half = float(stats.t.isf(alpha / 2, degrees)) * se
    *_, heterogeneity = _weighted_fit(y, 1 / variance, design)
    return RandomEffects(
        n=y.size,
        coefficients=coefficients,
        errors=se,
        p=2 * stats.t.sf(np.abs(coefficients) / se, degrees),
        low=coefficients - half,
        high=coefficients + half,
        tau=math.sqrt(tau2),
        i_squared=max(0.0, 1 - degrees / heterogeneity) if heterogeneity > 0 else 0.0,
    )


def _weighted_fit(y: np.ndarray, weights: np.ndarray, design: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return coefficients, (XᵀWX)⁻¹, and the weighted sum of squared residuals."""
    inverse = np.linalg.inv(design.T @ (weights[:, None] * design))
    coefficients = inverse @ (design.T @ (weights * y))
    return coefficients, inverse, float((weights * (y - design @ coefficients) ** 2).sum())


def _paule_mandel(y: np.ndarray, variance: np.ndarray, design: np.ndarray) -> float:
    """Return the τ² with which the weighted sum of squares equals its degrees of freedom; 0 if it is smaller already."""
    degrees = y.size - design.shape[1]

    def excess(tau2: float) -> float:
        return _weighted_fit(y, 1 / (variance + tau2), design)[2] - degrees

    if excess(0.0) <= 0:
        return 0.0
    high = float(y.var()) + 1e-30
    while excess(high) > 0:
        high *= 2
    return float(optimize.brentq(excess, 0.0, high, xtol=1e-14 * high, rtol=1e-12))


def moderate_variances(variances: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """Shrink sample variances towards a common one, the more the less they differ beyond chance (Smyth, 2004).

    The true variances are taken as s0² d0 / χ²(d0). ``d0`` and ``s0`` come from mean and variance of the logarithms; the result
    is (d0 s0² + d s²) / (d0 + d) with the ``d`` degrees of freedom of each sample variance. Variances of zero (a few pairs that all
    differ by the same amount) do not count for d0 and s0, and become positive.
    """
    s2, d = np.asarray(variances, float), np.asarray(degrees, float)
    known = s2 > 0
    if known.sum() < 2:
        return np.full_like(s2, s2.max())
    logs = np.log(s2[known]) - special.digamma(d[known] / 2) + np.log(d[known] / 2)
    beyond_chance = logs.var(ddof=1) - special.polygamma(1, d[known] / 2).mean()
    if beyond_chance <= 0:
        return np.full_like(s2, np.average(s2[known], weights=d[known]))
    d0 = 2 * _inverse_trigamma(beyond_chance)
    s0 = math.exp(logs.mean() + special.digamma(d0 / 2) - math.log(d0 / 2))
    return (d0 * s0 + d * s2) / (d0 + d)


def _inverse_trigamma(value: float) -> float:
    """Return the x with trigamma(x) = value; trigamma falls from ∞ to 0, and is between 1/x and 1/x + 1/x²."""
    low, high = 0.5 / (value + math.sqrt(value)), 2 / min(value, math.sqrt(value))
    return float(optimize.brentq(lambda x: special.polygamma(1, x) - value, low, high))
