"""Predict the gain over GAT on datasets that played no part in the paper, from the paper's published means alone.

    python docs/trend_prediction.py

prints the table of docs/trend.md. One point per dataset: the gain averaged over both scores.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import statsmodels.api as sm

from lcat_analysis.trend import published_trend

#: Average degrees of the datasets to predict (edges / nodes, both directions counted).
DEGREES = {
    "Tolokers": 88.28,
    "SquirrelFiltered": 42.28,
    "ChameleonFiltered": 19.90,
    "Minesweeper": 7.88,
    "Actor": 7.02,
}


def predictions(group: str) -> pd.DataFrame:
    """Fit the gain of ``group`` (``"CAT − GAT"``) against degree over the eleven datasets; predict it for ``DEGREES``.

    The interval is a 95 % prediction interval for the gain on one new dataset.
    """
    points = published_trend().points
    means = points[points["group"] == group].groupby("dataset")[["avg_degree", "difference"]].mean()
    fit = sm.OLS(means["difference"].to_numpy(), sm.add_constant(means["avg_degree"].to_numpy())).fit()
    new = np.column_stack([np.ones(len(DEGREES)), list(DEGREES.values())])
    frame = fit.get_prediction(new).summary_frame(alpha=0.05)
    frame.index = list(DEGREES)
    return frame[["mean", "obs_ci_lower", "obs_ci_upper"]].assign(intercept=fit.params[0], slope=fit.params[1])


def main() -> None:
    groups = ["CAT − GAT", "L-CAT − GAT"]
    print("| dataset | average degree | " + " | ".join(groups) + " |")
    print("|---|---:|" + "---:|" * len(groups))
    tables = [predictions(group) for group in groups]
    for name, degree in DEGREES.items():
        cells = [
            f"{t.loc[name, 'mean']:+.2f} [{t.loc[name, 'obs_ci_lower']:+.2f}, {t.loc[name, 'obs_ci_upper']:+.2f}]"
            for t in tables
        ]
        print(f"| {name} | {degree:.2f} | " + " | ".join(cells).replace("-", "−") + " |")
    for group, table in zip(groups, tables, strict=True):
        first = table.iloc[0]
        print(f"\n{group} = {first['intercept']:.4f} + {first['slope']:.5f} × degree")


if __name__ == "__main__":
    main()
