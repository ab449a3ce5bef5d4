"""What a run writes while it trains: GraphGym's ``stats.json`` lines, and λ of every layer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from graphgym_lcat.nn.interpolation import Lambdas

SPLITS = ("train", "val", "test")
LAMBDA_HEADER = "epoch,layer,head,lambda1,lambda2\n"


class AppendedFile:
    """Lines that are collected in memory and appended now and then; a resumed run cuts off what came after its checkpoint."""

    def __init__(self, path: Path, header: str = ""):
        self.path = path
        self.header = header
        self._pending: list[str] = []

    def start(self, position: int) -> None:
        """Keeps the first ``position`` bytes of what an earlier attempt wrote."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab") as file:
            if file.tell() < position:
                raise ValueError(f"{self.path} has {file.tell()} bytes, the checkpoint expects at least {position}")
            file.truncate(position)
        if position == 0 and self.header:
            self._pending.append(self.header)

    def add(self, line: str) -> None:
        self._pending.append(line)

    def flush(self) -> int:
        """Appends what is pending, forces it to the disk, and returns the file's size."""
        with open(self.path, "ab") as file:
            file.write("".join(self._pending).encode())
            file.flush()
            os.fsync(file.fileno())
            self._pending.clear()
            return file.tell()


class Records:
    """``<split>/stats.json`` and ``lambdas.csv`` of one run."""

    def __init__(self, run_dir: Path, has_lambdas: bool):
        self.stats = {split: AppendedFile(run_dir / split / "stats.json") for split in SPLITS}
        self.lambdas = AppendedFile(run_dir / "lambdas.csv", LAMBDA_HEADER) if has_lambdas else None

    def _files(self) -> dict[str, AppendedFile]:
        return self.stats | ({} if self.lambdas is None else {"lambdas": self.lambdas})

    def start(self, positions: dict[str, int]) -> None:
        for name, file in self._files().items():
            file.start(positions.get(name, 0))

    def flush(self) -> dict[str, int]:
        """Positions for the checkpoint."""
        return {name: file.flush() for name, file in self._files().items()}

    def add_stats(self, split: str, stats: dict[str, Any], digits: int) -> None:
        """One line an epoch, rounded as GraphGym does."""
        rounded = {key: round(value, digits) if isinstance(value, float) else value for key, value in stats.items()}
        self.stats[split].add(json.dumps(rounded) + "\n")

    def add_lambdas(self, epoch: int, layers: list[Lambdas]) -> None:
        for number, (lambda1, lambda2) in enumerate(layers):
            heads = max(len(value) if isinstance(value, tuple) else 0 for value in (lambda1, lambda2))
            for head in range(heads) if heads else [""]:
                values = [value[head] if isinstance(value, tuple) else value for value in (lambda1, lambda2)]
                self.lambdas.add(f"{epoch},{number},{head},{values[0]:.6g},{values[1]:.6g}\n")
