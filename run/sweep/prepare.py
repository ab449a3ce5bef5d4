"""Prepare the datasets of a sweep before any of its runs starts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from lcat_core.errors import UserError
from lcat_core.run_folder import RunRecord
from lcat_core.settings import Settings
from lcat_run.sweep.plan import Plan

_ABOUT_DATA = ("dataset.", "block_model.")


class DatasetPreparer(Protocol):
    """What this module asks a worker."""

    def prepare(self, settings: Settings) -> dict[str, Any]:
        """Download and process one dataset unless that is done already."""


def prepare_datasets(plan: Plan, runs: Sequence[RunRecord], worker: DatasetPreparer) -> None:
    """Download and process every dataset that the runs need, once each.

    Raises:
        UserError: Some are unavailable.
    """
    datasets: dict[str, tuple[RunRecord, Settings]] = {}
    for run in runs:
        settings = run.settings(plan.common)
        about_data = {key: value for key, value in settings.items() if key.startswith(_ABOUT_DATA)}
        about_data.pop("dataset.label", None)
        datasets.setdefault(repr(sorted(about_data.items())), (run, settings))
    problems = {}
    for run, settings in datasets.values():
        reply = worker.prepare(settings)
        if not reply.get("ok"):
            problems[run.dataset] = re.sub(r"^\w+Error: ", "", str(reply.get("error")))
    if problems:
        raise UserError(
            f"nothing was started, because {len(problems)} of {len(datasets)} datasets are unavailable: "
            f"{'; '.join(problems.values())}"
        )
