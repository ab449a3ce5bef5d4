"""What a sweep says while it runs."""

import io

import pytest

from lcat_run.sweep import progress


@pytest.fixture
def clock(monkeypatch):
    """A time that the test sets: ``clock[0]``."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_the_time_left_counts_down_while_a_long_run_is_under_way(clock):
    shown = progress.Progress(2, 0, {"short": 1.0, "long": 3.0}, file=io.StringIO())
    clock[0] = 100.0
    shown.finished("short", "done")
    assert "ETA 0:05:00" in shown._text(1)
    clock[0] = 300.0
    assert "ETA 0:01:40" in shown._text(1)
    clock[0] = 1000.0
    assert "ETA 0:00:00" in shown._text(1)


def test_runs_per_minute_are_those_of_the_whole_time(clock):
    shown = progress.Progress(4, 0, dict.fromkeys("abcd", 1.0), file=io.StringIO())
    clock[0] = 60.0
    shown.finished("a", "done")
    clock[0] = 120.0
    shown.finished("b", "failed")
    assert shown._text(2).startswith("1 failed, 2 running, 1 runs/min")
