"""The pooled estimate and the meta-regression, against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import special, stats
from statsmodels.stats.meta_analysis import combine_effects

from lcat_analysis.random_effects import moderate_variances, random_effects


def data(seed: int, n: int = 9, tau: float = 1.0):
    rng = np.random.default_rng(seed)
    errors = rng.uniform(0.2, 1.2, n)
    return rng.normal(0.3, tau, n) + rng.normal(0, errors), errors, rng.uniform(2, 40, n)


@pytest.mark.parametrize(("seed", "tau"), [(0, 1.0), (1, 2.0), (2, 0.0), (3, 0.0)])
def test_the_pooled_estimate_is_that_of_statsmodels(seed, tau):
    y, errors, _ = data(seed, tau=tau)
    ours = random_effects(y, errors)
    theirs = combine_effects(y, errors**2, method_re="iterated", use_t=True, atol=1e-12)
    assert ours.tau**2 == pytest.approx(theirs.tau2, rel=1e-5, abs=1e-12)
    assert ours.coefficients[0] == pytest.approx(theirs.mean_effect_re, rel=1e-6)
    # Knapp and Hartung's error, but never smaller than the ordinary one.
    assert ours.errors[0] == pytest.approx(max(theirs.sd_eff_w_re_hksj, theirs.sd_eff_w_re), rel=1e-5)
    assert ours.i_squared == pytest.approx(max(theirs.i2, 0), abs=1e-6)
    half = stats.t.isf(0.025, len(y) - 1) * ours.errors[0]
    assert (ours.low[0], ours.high[0]) == pytest.approx((ours.coefficients[0] - half, ours.coefficients[0] + half))
    assert ours.p[0] == pytest.approx(2 * stats.t.sf(abs(ours.coefficients[0]) / ours.errors[0], len(y) - 1))


@pytest.mark.parametrize("seed", range(4))
def test_the_line_is_weighted_least_squares_with_the_variance_between_datasets(seed):
    y, errors, x = data(seed)
    ours = random_effects(y, errors, x)
    theirs = sm.WLS(y, sm.add_constant(x), weights=1 / (errors**2 + ours.tau**2)).fit()
    assert ours.coefficients == pytest.approx(theirs.params)
    if ours.tau > 0:  # by definition of Paule and Mandel the scale is 1 then
        assert theirs.scale == pytest.approx(1, abs=1e-8)
        assert ours.p == pytest.approx(theirs.pvalues, rel=1e-6)
        assert np.column_stack([ours.low, ours.high]) == pytest.approx(theirs.conf_int(), rel=1e-6)


def test_identical_differences_have_no_variance_between_datasets():
    found = random_effects(np.full(4, 0.5), np.full(4, 0.1))
    assert (found.tau, found.i_squared) == (0, 0)
    assert found.errors[0] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("y", "errors", "x"),
    [
        ([1.0], [0.1], None),
        ([1.0, 2.0], [0.1, 0.0], None),
        ([1.0, 2.0], [0.1, 0.1], [1, 2]),
        ([1, 2, 3], [1, 1, 1], [5, 5, 5]),
    ],
)
def test_there_is_no_estimate_without_spare_datasets_positive_errors_and_two_x(y, errors, x):
    assert random_effects(np.array(y, float), np.array(errors), None if x is None else np.array(x)) is None


def test_moderation_finds_the_prior_of_variances_drawn_from_it():
    rng = np.random.default_rng(0)
    d0, s0, d = 8.0, 2.0, 4
    true = s0 * d0 / rng.chisquare(d0, 200_000)
    sample = true * rng.chisquare(d, true.size) / d
    moderated = moderate_variances(sample, np.full(true.size, d))
    assert moderated == pytest.approx((d0 * s0 + d * sample) / (d0 + d), rel=0.03)
    # The moderated variance is closer to the truth, which is its purpose.
    assert np.abs(np.log(moderated / true)).mean() < 0.7 * np.abs(np.log(sample / true)).mean()


def test_variances_that_differ_by_chance_alone_become_equal():
    sample = np.random.default_rng(1).chisquare(4, 6) / 4
    spread = np.log(sample).var(ddof=1)
    assert spread < special.polygamma(1, 2)
    assert moderate_variances(sample, np.full(6, 4)) == pytest.approx(np.full(6, sample.mean()))


def test_a_variance_of_zero_becomes_positive_without_changing_the_others():
    sample, d = np.array([1.0, 30.0, 0.01, 4.0]), np.full(4, 20)
    with_zero = moderate_variances(np.append(sample, 0.0), np.full(5, 20))
    assert with_zero[:4] == pytest.approx(moderate_variances(sample, d))
    assert 0 < with_zero[4] < with_zero[:4].min()
