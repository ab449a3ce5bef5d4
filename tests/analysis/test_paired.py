"""The statistics of paired differences, against a published example and against their formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lcat_analysis.paired import detectable_effect, paired_test
from lcat_core.errors import ResultsError

# Student (1908), The probable error of a mean, Biometrika 6: sleep gained by ten patients with two drugs.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def test_students_sleep_data_give_the_published_result():
    """R prints for its data set ``sleep``: t = −4.0621, p = 0.002833, interval −2.4598858 to −0.7001142."""
    test = paired_test(SLEEP_1, SLEEP_2)
    assert test.n == 10
    assert test.difference == pytest.approx(-1.58)
    assert test.t == pytest.approx(-4.0621, abs=5e-5)
    assert test.p == pytest.approx(0.002833, abs=5e-7)
    assert (test.ci_low, test.ci_high) == pytest.approx((-2.4598858, -0.7001142), abs=5e-8)


def test_every_number_agrees_with_its_formula():
    x, y = np.array(SLEEP_2), np.array(SLEEP_1)
    d, n = x - y, 10
    mean = d.sum() / n
    sd = math.sqrt(((d - mean) ** 2).sum() / (n - 1))
    error = sd / math.sqrt(n)
    test = paired_test(x, y, alpha=0.1, margin=2.0)
    assert test.sd == pytest.approx(sd)
    assert test.effect_size == pytest.approx(mean / sd)
    assert test.t == pytest.approx(mean / error)
    assert test.p == pytest.approx(2 * stats.t.sf(abs(mean / error), n - 1))
    half = stats.t.isf(0.05, n - 1) * error
    assert (test.ci_low, test.ci_high) == pytest.approx((mean - half, mean + half))
    lower, upper = stats.t.sf((mean + 2) / error, n - 1), stats.t.cdf((mean - 2) / error, n - 1)
    assert test.p_equivalent == pytest.approx(max(lower, upper))


def test_the_signed_rank_p_agrees_with_enumerating_all_signs():
    d = np.array([0.3, -0.1, 0.7, 0.9, -0.4, 1.6])
    ranks = stats.rankdata(np.abs(d))
    observed = abs((ranks * np.sign(d)).sum())
    sums = [abs((ranks * signs).sum()) for signs in itertools.product((1, -1), repeat=6)]
    assert paired_test(d, np.zeros(6)).p_wilcoxon == pytest.approx(np.mean(np.array(sums) >= observed - 1e-9))


@pytest.mark.parametrize("n", [4, 7, 10, 30])
def test_ties_and_zeros_give_the_signed_rank_p_of_scipy(n):
    d = np.round(np.random.default_rng(n).normal(0.4, 1, n), 1)
    d[:2], d[2] = 0.5, 0.0
    nonzero = d[d != 0]
    assert paired_test(d, np.zeros(n)).p_wilcoxon == pytest.approx(stats.wilcoxon(nonzero).pvalue)


def power_by_integration(effect: float, n: int, alpha: float) -> float:
    """Integrate P(|mean / error| > critical | sd) over the distribution of the sd, sd² ~ χ²(n − 1) / (n − 1)."""
    critical, shift = stats.t.isf(alpha / 2, n - 1), effect * math.sqrt(n)
    u = (np.arange(40_000) + 0.5) / 40_000
    sd = np.sqrt(stats.chi2.ppf(u, n - 1) / (n - 1))
    return float(np.mean(stats.norm.sf(critical * sd - shift) + stats.norm.cdf(-critical * sd - shift)))


@pytest.mark.parametrize("n", [2, 3, 5, 10, 50, 200])
@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("power", [0.8, 0.95])
def test_the_detectable_effect_has_the_stated_power(n, alpha, power):
    assert power_by_integration(detectable_effect(n, alpha, power), n, alpha) == pytest.approx(power, abs=2e-4)


@pytest.mark.parametrize(("n", "alpha", "expected"), [(2, 0.01, 57.7), (5, 0.001, 4.77), (10, 0.05, 0.9962)])
def test_the_detectable_effect_of_few_pairs_at_a_strict_level(n, alpha, expected):
    """Statsmodels' solver claims 10.0 and 3.81 for the first two."""
    assert detectable_effect(n, alpha) == pytest.approx(expected, rel=2e-3)


def test_the_detectable_difference_is_the_effect_times_the_spread():
    test = paired_test(SLEEP_2, SLEEP_1)
    assert test.detectable == pytest.approx(detectable_effect(10) * test.sd)


def test_identical_runs_are_no_difference_at_all():
    test = paired_test([90.0, 91.0, 92.0], [90.0, 91.0, 92.0])
    assert (test.difference, test.t, test.p, test.p_wilcoxon, test.effect_size) == (0, 0, 1, 1, 0)
    assert (test.constant, test.detectable) == (True, None)


@pytest.mark.parametrize(("n", "expected"), [(2, 0.25), (5, 1 / 32)])
def test_constant_differences_within_the_margin_need_five_seeds_to_be_equivalent(n, expected):
    test = paired_test([90.2] * n, [90.0] * n, margin=0.5)
    assert test.p_equivalent == pytest.approx(expected)
    assert paired_test([91.0] * n, [90.0] * n, margin=0.5).p_equivalent == 1


@pytest.mark.parametrize("n", [2, 3, 5, 6, 10])
def test_constant_differences_take_the_exact_signed_rank_p(n):
    base = np.linspace(80.1, 85.7, n)
    test = paired_test(base + 0.3, base)
    assert test.constant
    assert test.p == pytest.approx(2.0 ** (1 - n))
    assert (test.t, test.effect_size) == (math.inf, math.inf)
    assert (test.ci_low, test.ci_high) == pytest.approx((0.3, 0.3))


def test_subtraction_noise_does_not_hide_a_constant_difference():
    assert paired_test([0.3, 0.9, 0.4], [0.1, 0.7, 0.2]).constant


def as_stored(correct: list[int], total: int) -> np.ndarray:
    """Accuracies in per cent as runs store them: single-precision fractions."""
    return 100 * (np.array(correct, dtype=np.float32) / np.float32(total)).astype(float)


def test_two_runs_that_gain_one_node_each_are_a_constant_difference_in_single_precision():
    """Unmerged, rounding errors of 5e-6 points give t = 372831."""
    model, baseline = as_stored([351, 344], 407), as_stored([350, 343], 407)
    assert np.ptp(model - baseline) > 1e-7
    test = paired_test(model, baseline)
    assert test.constant
    assert test.p == 0.5


@pytest.mark.parametrize("total", [60, 407, 6000, 86619, 2213091])
def test_ties_of_stored_accuracies_are_those_of_the_counts(total):
    generator = np.random.default_rng(total)
    for _ in range(20):
        correct = generator.integers(total // 2, total - 4, 6)
        gain = generator.integers(-3, 4, 6)
        exact = paired_test(correct + gain, correct).p_wilcoxon
        stored = paired_test(as_stored(correct + gain, total), as_stored(correct, total)).p_wilcoxon
        assert stored == pytest.approx(exact)


def test_swapping_the_models_changes_signs_only():
    one, other = paired_test(SLEEP_1, SLEEP_2), paired_test(SLEEP_2, SLEEP_1)
    assert (one.difference, one.t) == pytest.approx((-other.difference, -other.t))
    assert (one.p, one.p_wilcoxon, one.p_equivalent) == pytest.approx((other.p, other.p_wilcoxon, other.p_equivalent))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(*[st.floats(0, 100)] * 2), min_size=2, max_size=12))
def test_no_input_gives_a_value_that_is_not_a_number(pairs):
    test = paired_test(*np.array(pairs).T)
    numbers = [v for v in vars(test).values() if v is not None]
    assert not any(math.isnan(v) for v in numbers)
    assert 0 <= test.p <= 1
    assert test.ci_low <= test.difference + 1e-9
    assert test.difference <= test.ci_high + 1e-9


@pytest.mark.parametrize(
    ("model", "baseline", "message"),
    [
        ([1.0], [2.0], "at least 2 pairs, got 1"),
        ([], [], "at least 2 pairs, got 0"),
        ([1.0, 2.0], [1.0], "got 2 and 1"),
        ([1.0, math.nan], [1.0, 2.0], "finite values"),
        ([1.0, math.inf], [1.0, 2.0], "finite values"),
    ],
)
def test_what_cannot_be_tested_is_refused(model, baseline, message):
    with pytest.raises(ResultsError, match=message):
        paired_test(model, baseline)
