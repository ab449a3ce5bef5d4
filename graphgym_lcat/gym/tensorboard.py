"""``tensorboard_each_run: true``: the curves of a run for TensorBoard, in its folder ``tensorboard``."""

from __future__ import annotations

import importlib.util
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from graphgym_lcat.gym.loops import Lambdas
from lcat_core.files import make_folder


def why_unavailable() -> str | None:
    """Return why curves cannot be written here, or None."""
    if importlib.util.find_spec("tensorboardX") is None:
        return "it needs the package tensorboardX: pip install tensorboardX"
    return None


class Board:
    """Loss, metrics and λ of every epoch; a resumed run discards the epochs after its checkpoint.

    Events are written directly: the ``SummaryWriter`` of tensorboardX passes them to a thread, and its ``flush`` does not wait for
    the queue of that thread, so epochs that a checkpoint counts as written could be lost.
    """

    def __init__(self, run_dir: Path, first_epoch: int):
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        folder = run_dir / "tensorboard"
        make_folder(folder)
        # Files are named by the second. The suffix keeps a run that resumes at once from replacing its first part, and nobody can
        # place a link where the file will be.
        self._writer = EventsWriter(str(folder / "events"), f".{first_epoch}.{secrets.token_hex(8)}")
        self._event = Event
        start = SessionLog(status=SessionLog.SessionStatus.START)
        self._writer.write_event(Event(wall_time=time.time(), step=first_epoch, session_log=start))

    def add(self, epoch: int, metrics: Mapping[str, Mapping[str, float]], lambdas: Sequence[Lambdas]) -> None:
        for split, values in metrics.items():
            for name, value in values.items():
                self._add_scalar(f"{name}/{split}", value, epoch)
        for layer, pair in enumerate(lambdas):
            for name, number in zip(("lambda1", "lambda2"), pair, strict=True):
                heads = {f".{h}": v for h, v in enumerate(number)} if isinstance(number, tuple) else {"": number}
                for head, value in heads.items():
                    self._add_scalar(f"{name}/layer{layer}{head}", value, epoch)

    def _add_scalar(self, tag: str, value: float, epoch: int) -> None:
        event = self._event(wall_time=time.time(), step=epoch)
        event.summary.value.add(tag=tag, simple_value=value)
        self._writer.write_event(event)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
