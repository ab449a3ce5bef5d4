"""Runs that were finished elsewhere and are known from an archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lcat_core.archive import Archive, ArchivedRun, merge_archives, read_archive, restore_run
from lcat_core.claims import Claim
from lcat_core.errors import ResultsError
from lcat_core.identity import run_id
from lcat_core.outcomes import Outcome
from lcat_core.run_folder import is_done, parse_result
from lcat_core.text import count
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.plan import Plan


def restore_known_runs(paths: Sequence[Path], plan: Plan, folder: SweepFolder, *, write: bool) -> tuple[set[str], str]:
    """Write the archived runs of this sweep into its folder, where they are missing; return their ids and a note for the user.

    Args:
        write: False only counts them.

    Raises:
        ResultsError: An archive is damaged, contradicts another one, or does not belong to this grid.
    """
    archive = merge_archives((str(path), read_archive(path)) for path in paths)
    _check_identities(archive, plan)
    wanted = {run.run_id: run.params for run in plan.runs}
    known = [_as_planned(run, wanted[identity]) for identity, run in archive.runs.items() if identity in wanted]
    names = ", ".join(map(str, paths))
    if not known:
        raise ResultsError(f"{names}: none of {count(len(archive.runs), 'run')} belongs to the grid {plan.grid.name!r}")
    missing = [run for run in known if not is_done(folder.run_dir(run.result.run_id))]
    for run in missing if write else []:
        run_dir = folder.make_run_dir(run.result.run_id)
        claim = Claim.take(run_dir)
        if claim is None:
            continue  # somebody is executing it
        try:
            if not is_done(run_dir):
                restore_run(run, run_dir)
        finally:
            claim.release(Outcome.DONE)
    verb = "restored" if write else "to restore"
    note = f"{count(len(known), 'run')} known from {names}, {len(missing)} of them {verb}"
    return {run.result.run_id for run in known}, note


def _as_planned(run: ArchivedRun, params: Mapping[str, Any]) -> ArchivedRun:
    """Say what this grid varies: the same run may be part of another grid, which varies other keys."""
    document = {**run.result.document, "params": dict(params)}
    return replace(run, result=parse_result(document, run.result.run_id))


def _check_identities(archive: Archive, plan: Plan) -> None:
    for identity, run in archive.runs.items():
        settings = {**run.result.settings, "seed": run.result.seed}
        if settings.get("dataset.name") is None:
            continue  # recorded by an earlier version, without its settings
        expected = run_id(run.result.model, settings, plan.defaults)
        if expected != identity:
            raise ResultsError(f"the run {identity} does not fit its own settings, which make {expected}")
