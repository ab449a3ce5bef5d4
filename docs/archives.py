"""The archives of finished runs in docs/results, from which the pages are made."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lcat_analysis.load import load

RESULTS = Path(__file__).parent / "results"

#: Datasets that were run with rebuilt features: the original ones can no longer be downloaded.
REBUILT = ("GitHub", "FacebookPagePage", "TwitchEN")
REBUILT_MARK = "†"
REBUILT_NOTE = (
    f"{REBUILT_MARK} with rebuilt features: the original ones can no longer be downloaded, so these numbers are not "
    "expected to match the published ones exactly."
)


def find_archive(sweep: str, results: Path = RESULTS) -> Path | None:
    """Return the archive of a sweep, or None if it has none yet."""
    path = results / f"{sweep}.jsonl.gz"
    return path if path.exists() else None


def load_runs(*sweeps: str, results: Path = RESULTS) -> pd.DataFrame:
    """Return the runs of several archives as one table; a run that is in two of them counts once."""
    paths = [path for path in (find_archive(sweep, results) for sweep in sweeps) if path]
    runs = pd.concat([load(path).runs for path in paths], ignore_index=True)
    return runs.drop_duplicates("run_id")


def marked(dataset: str) -> str:
    """Return the name of a dataset, with a mark if its features were rebuilt."""
    return dataset + REBUILT_MARK if dataset in REBUILT else dataset
