"""Curves for TensorBoard, read back from the event files."""

import struct

import pytest
from tensorboardX.proto.event_pb2 import Event

from graphgym_lcat.gym import tensorboard
from graphgym_lcat.gym.runner import Run, execute
from graphgym_lcat.gym.settings import check_settings
from lcat_core.errors import SettingsError

SETTINGS = {
    "dataset.format": "lcat",
    "dataset.name": "KarateClub",
    "model.type": "lcat",
    "gnn.layer_type": "lcatconv",
    "optim.max_epoch": 6,
    "tensorboard_each_run": True,
}


class Stop(Exception):
    pass


def scalars(folder):
    """What TensorBoard would show: the values of each curve by epoch, less what a restart took back."""
    curves = {}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event = Event.FromString(content[12 : 12 + length])
            content = content[16 + length :]
            if event.WhichOneof("what") == "session_log":
                for curve in curves.values():
                    for epoch in [e for e in curve if e >= event.step]:
                        del curve[epoch]
            for value in event.summary.value:
                curves.setdefault(value.tag, {})[event.step] = value.simple_value
    return curves


def test_every_epoch_has_its_loss_its_metrics_and_its_lambdas(tmp_path):
    result = execute(Run(tmp_path, "lcat", SETTINGS, {}))
    curves = scalars(tmp_path / "tensorboard")
    assert set(curves) >= {"loss/train", "accuracy/val", "accuracy/test", "lambda1/layer0", "lambda2/layer1"}
    assert all(list(curve) == list(range(6)) for curve in curves.values())
    assert curves["accuracy/test"][result["best_epoch"]] == pytest.approx(result["test"]["accuracy"])


def test_a_resumed_run_records_no_epoch_twice(tmp_path):
    def stop(loop):
        if loop.epoch == 4:
            raise Stop

    settings = SETTINGS | {"lcat.checkpoint_seconds": 0.0}
    run = Run(tmp_path / "broken", "lcat", settings, {})
    with pytest.raises(Stop):
        execute(run, stop)
    execute(run)
    execute(Run(tmp_path / "complete", "lcat", settings, {}))
    assert scalars(tmp_path / "broken/tensorboard") == scalars(tmp_path / "complete/tensorboard")


def test_without_the_package_one_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(tensorboard.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="pip install tensorboardX"):
        check_settings(SETTINGS)
