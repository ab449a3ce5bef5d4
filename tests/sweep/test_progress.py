"""The progress of a sweep."""

import io

import pytest

from lcat_core.outcomes import Outcome
from lcat_run.sweep import progress


@pytest.fixture
def clock(monkeypatch):
    """The time, which the test sets through ``clock[0]``."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_the_time_left_counts_down_while_a_long_run_is_under_way(clock):
    shown = progress.Progress(2, 0, {"short": 1.0, "long": 3.0}, file=io.StringIO())
    clock[0] = 100.0
    shown.finished("short", Outcome.DONE)
    assert "ETA 0:05:00" in shown._text(1)
    clock[0] = 300.0
    assert "ETA 0:01:40" in shown._text(1)
    clock[0] = 1000.0
    assert "ETA 0:00:00" in shown._text(1)


def test_runs_per_minute_are_averaged_over_all_the_time(clock):
    shown = progress.Progress(4, 0, dict.fromkeys("abcd", 1.0), file=io.StringIO())
    clock[0] = 60.0
    shown.finished("a", Outcome.DONE)
    clock[0] = 120.0
    shown.finished("b", Outcome.FAILED)
    assert shown._text(2).startswith("1 failed, 2 running, 1 runs/min")
