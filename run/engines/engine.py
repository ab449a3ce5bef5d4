"""The contract of an engine: a class that another package can write, and ``lcat sweep`` finds by entry point.

``lcat sweep`` calls, in this order: :meth:`Engine.add_options`, :meth:`~Engine.configure`, :meth:`~Engine.adapt`,
:meth:`~Engine.reconcile`, :meth:`~Engine.look`, then either :meth:`~Engine.preview` (``--dry-run``) or :meth:`~Engine.start`.
``lcat status`` calls only :meth:`~Engine.look`, ``lcat cancel`` only :meth:`~Engine.cancel`, of every installed engine: each
answers for what it started.
"""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from lcat_core.run_folder import RunRecord, RunState, State
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.plan import Plan
from lcat_run.sweep.state import Snapshot
from lcat_run.sweep.worker import Worker


@dataclass
class QueueLook:
    """What an engine knows about runs that it has accepted and that are not finished.

    Attributes:
        states: By run id, usually ``State.QUEUED``. They replace what the files of a run say only if those say that it is
            missing, paused or killed.
        notes: Remarks for the user.
    """

    states: dict[str, RunState] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Launch:
    """One ``lcat sweep``, as its engine sees it.

    Attributes:
        folder: The sweep's folder, already written when :meth:`Engine.start` is called.
        plan: All runs of the grid, the settings that they share, and the defaults.
        chosen: The runs that ``--only`` selects.
        runs: Those of them to start now, longest first.
        snapshot: The states of all runs before the launch.
        worker: An idle worker process that has already imported torch. An engine may use it; the caller closes it.
        command: The words after ``lcat``, to tell the user how to resume.
    """

    folder: SweepFolder
    plan: Plan
    chosen: Sequence[RunRecord]
    runs: Sequence[RunRecord]
    snapshot: Snapshot
    worker: Worker
    command: Sequence[str]


@dataclass(frozen=True)
class Ending:
    """What ``lcat sweep`` prints last, and its exit status."""

    message: str
    exit_status: int = 0


class Engine(ABC):
    """Executes the runs of sweeps. Subclasses take no arguments: options come through :meth:`configure`."""

    #: The value of ``--engine``; also the name of the engine's folder in a sweep (:meth:`SweepFolder.engine_folder`).
    name: ClassVar[str]
    #: One line for ``lcat sweep --help``.
    summary: ClassVar[str] = ""
    #: Runs in these states are not started again.
    skipped_states: ClassVar[frozenset[State]] = frozenset({State.RUNNING, State.QUEUED, State.UNKNOWN})
    #: Threads of the worker that plans the sweep and prepares the datasets.
    planning_threads: int = 1

    def add_options(self, options: argparse._ArgumentGroup) -> None:  # noqa: B027  (optional)
        """Add the options that ``lcat sweep`` takes with this engine."""

    def configure(self, options: argparse.Namespace) -> None:  # noqa: B027  (optional)
        """Read and check the options, before anything is planned; ``options.threads`` is common to all engines.

        Raises:
            LcatError: An option is invalid, or something that the engine needs is missing.
        """

    def adapt(self, plan: Plan, worker: Worker) -> None:  # noqa: B027  (optional)
        """Adapt to the plan and to this machine, whose GPUs the worker has counted."""

    def reconcile(self, folder: SweepFolder) -> list[str]:
        """Bring the engine's records up to date before a launch, and return notes for the user."""
        return []

    @abstractmethod
    def look(self, folder: SweepFolder) -> QueueLook:
        """Say which runs the engine has accepted, and is neither executing nor finished with."""

    @abstractmethod
    def parallel_runs(self, number: int) -> int:
        """Estimate how many of ``number`` runs can execute at the same time."""

    def preview(self, launch: Launch) -> str:
        """Describe for ``--dry-run`` what :meth:`start` would do, without writing anything to the folder."""
        return ""

    @abstractmethod
    def start(self, launch: Launch) -> Ending:
        """Execute ``launch.runs``, or hand them to something that does, and return."""

    @abstractmethod
    def cancel(self, folder: SweepFolder) -> list[str]:
        """Stop everything that the engine started, and return one line per thing; runs keep their checkpoints.

        Raises:
            LcatError: What was started cannot be reached now.
        """
