"""What a run records while it trains: GraphGym's ``stats.json``, λ of every layer, and curves for TensorBoard."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch_geometric.graphgym.config import cfg

from graphgym_lcat.gym.loops import Epoch, Lambdas, Loop, ResumableLoop, Step
from graphgym_lcat.gym.tensorboard import Board
from lcat_core.files import make_folder, open_to_append
from lcat_core.run_folder import LAMBDAS, SPLITS, STATS

LAMBDA_HEADER = "epoch,layer,head,lambda1,lambda2\n"
_LAMBDAS = "lambdas"


def find_loss(run_dir: Path, positions: Any) -> str | None:
    """Say which file is shorter than it was when a checkpoint recorded its ``positions``; None if all epochs are there."""
    for name, position in positions.items() if isinstance(positions, dict) else ():
        path = _path(run_dir, str(name))
        size = path.stat().st_size if path.is_file() else 0
        if isinstance(position, int) and size < position:
            return f"{path} has {size} bytes, {position - size} fewer than when the checkpoint was written"
    return None


def _path(run_dir: Path, name: str) -> Path:
    return run_dir / LAMBDAS if name == _LAMBDAS else run_dir / name / STATS


class AppendedFile:
    """Lines that are collected in memory and appended from time to time; a resumed run drops those after its checkpoint."""

    def __init__(self, path: Path, header: str = ""):
        self.path = path
        self.header = header
        self._pending: list[str] = []

    def start(self, position: int) -> None:
        """Keep the first ``position`` bytes that an earlier attempt wrote.

        Raises:
            ValueError: The file is shorter.
        """
        make_folder(self.path.parent)
        with open_to_append(self.path) as file:
            if file.tell() < position:
                raise ValueError(f"{self.path} has {file.tell()} bytes, the checkpoint expects at least {position}")
            file.truncate(position)
        if position == 0 and self.header:
            self._pending.append(self.header)

    def add(self, line: str) -> None:
        self._pending.append(line)

    def flush(self) -> int:
        """Append the pending lines, force them to the disk, and return the size of the file."""
        with open_to_append(self.path) as file:
            file.write("".join(self._pending).encode())
            file.flush()
            os.fsync(file.fileno())
            self._pending.clear()
            return file.tell()


class History:
    """The files that grow with every epoch of a resumable loop; any other loop has none."""

    def __init__(self, run_dir: Path, loop: Loop):
        self._run_dir = run_dir
        self._files: dict[str, AppendedFile] = {}
        self._num_parameters = 0
        self._has_board = False
        self._board: Board | None = None
        if isinstance(loop, ResumableLoop):
            self._files = {split: AppendedFile(_path(run_dir, split)) for split in SPLITS}
            if loop.has_lambdas:
                self._files[_LAMBDAS] = AppendedFile(_path(run_dir, _LAMBDAS), LAMBDA_HEADER)
            self._num_parameters = loop.num_parameters
            self._has_board = cfg.tensorboard_each_run

    def start(self, first_epoch: int = 0, positions: Mapping[str, int] | None = None) -> None:
        """Open the files; ``positions`` is what :meth:`flush` returned when the checkpoint was written."""
        for name, file in self._files.items():
            file.start((positions or {}).get(name, 0))
        if self._has_board:
            self._board = Board(self._run_dir, first_epoch)

    def add(self, epoch: Epoch | Step) -> None:
        """Record an epoch; steps within one leave nothing."""
        if isinstance(epoch, Step):
            return
        for split, metrics in epoch.metrics.items():
            self._add_stats(split, epoch, metrics)
        if _LAMBDAS in self._files:
            self._add_lambdas(epoch.number, epoch.lambdas)
        if self._board is not None:
            self._board.add(epoch.number, epoch.metrics, epoch.lambdas)

    def flush(self) -> dict[str, int]:
        """Force everything to the disk and return the sizes of the files, for a checkpoint."""
        if self._board is not None:
            self._board.flush()
        return {name: file.flush() for name, file in self._files.items()}

    def close(self) -> None:
        if self._board is not None:
            self._board.close()
            self._board = None

    def _add_stats(self, split: str, epoch: Epoch, metrics: Mapping[str, float]) -> None:
        """Add one line, rounded and ordered as GraphGym does."""
        eta = {"eta": epoch.eta} if split == "train" else {}
        stats: dict[str, float] = {"epoch": epoch.number, **eta, "loss": metrics["loss"], "lr": epoch.learning_rate}
        stats |= {"params": self._num_parameters, "time_iter": epoch.seconds, **metrics}
        rounded = {key: round(value, cfg.round) if isinstance(value, float) else value for key, value in stats.items()}
        self._files[split].add(json.dumps(rounded) + "\n")

    def _add_lambdas(self, epoch: int, layers: Sequence[Lambdas]) -> None:
        for number, pair in enumerate(layers):
            heads = max(len(value) if isinstance(value, tuple) else 0 for value in pair)
            for head in range(max(heads, 1)):
                lambda1, lambda2 = (value[head] if isinstance(value, tuple) else value for value in pair)
                name = head if heads else ""
                self._files[_LAMBDAS].add(f"{epoch},{number},{name},{lambda1:.6g},{lambda2:.6g}\n")
