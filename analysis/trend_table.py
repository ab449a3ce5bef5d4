"""The trend as a table: slopes, tests, and what happens without single datasets."""

from __future__ import annotations

import math

import pandas as pd

from lcat_analysis.cells import MISSING, Cell, Row, Table, interval_cell, number_cell, p_cell, signed, signed_cell
from lcat_analysis.trend import Trend
from lcat_analysis.trend_fit import Fit


def trend_table(found: Trend) -> Table:
    """Return slopes and intervals, in points (or units of the loss) per neighbour, or per doubling of the degree."""
    interval = f"{100 * (1 - found.alpha):g} % CI"
    columns = ["n", "Slope", interval, "Intercept", "r", "p", "Perm. p", "ρ", "p of ρ"]
    columns += ["Slope without one", "Largest p", "Weighted", interval, "p"]
    rows = [Row((name,), _fit_cells(fit)) for name, fit in found.fits.items()]
    x = "the base-2 logarithm of the average degree" if found.log_degree else "average degree (edges / nodes)"
    notes = [
        f"{found.difference_name.capitalize()} against {x}: ordinary least squares; interval and p of the slope with HC3 errors. "
        "n: number of points, one per dataset. Perm. p: permutation test of the correlation over the datasets; ρ: Spearman's, "
        "with its permutation p.",
        "Slope without one, Largest p: with one dataset left out, the range of slopes, and the largest p with the dataset that it "
        "lacks. Weighted: meta-regression with weights 1/(se² + τ²), Knapp–Hartung interval.",
        "Datasets differ in more than their degree (kind of graph, classes, features), so a trend over datasets does not show that "
        "the degree is its cause.",
    ]
    if not rows:
        notes.append("No line: a fit needs at least 3 points of different degrees.")
    notes += [*found.notes, *(f"Left out: {text}." for text in found.left_out)]
    data = pd.DataFrame([{"line": name, **vars(fit)} for name, fit in found.fits.items()])
    return Table("Degree trend", ["Line"], columns, rows, notes, data, left=("Largest p",))


def _fit_cells(fit: Fit) -> list[Cell]:
    largest = p_cell(fit.loo_p)
    if fit.loo_without:
        largest.text = f"{largest.text} ({fit.loo_without})"
    return [
        Cell(str(fit.n), sort=fit.n),
        signed_cell(fit.slope, 4),
        interval_cell(fit.ci_low, fit.ci_high, 4),
        signed_cell(fit.intercept),
        number_cell(fit.r),
        p_cell(fit.p),
        p_cell(fit.p_permutation),
        number_cell(fit.spearman),
        p_cell(fit.p_spearman),
        _range_cell(fit.loo_low, fit.loo_high),
        largest,
        signed_cell(fit.meta_slope, 4),
        interval_cell(fit.meta_low, fit.meta_high, 4),
        p_cell(fit.meta_p),
    ]


def _range_cell(low: float, high: float) -> Cell:
    return Cell(MISSING) if math.isnan(low) else Cell(f"{signed(low, 4)} to {signed(high, 4)}", sort=low)
