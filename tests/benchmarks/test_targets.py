"""The targets of speed: ratios, verdicts, pieces that are measured one after another, and the table in benchmarks/README.md."""

import json
from pathlib import Path

import pytest
from matplotlib.colors import to_hex

from lcat_benchmarks import charts, graphs, target_steps, targets
from lcat_benchmarks.targets import GROUPS, Group, Target
from lcat_run.cli import main
from lcat_run.commands import bench

ROOT = Path(__file__).parents[2]
FASTER, SLOWER = Target("a / b", "a", "b", 2, 1.5), Target("c / d", "c", "d", 8, 15, at_least=True, threads=1)


@pytest.fixture
def measured(monkeypatch):
    """Two groups with given times; which of them was measured, with how many threads."""
    seen = []

    def times(name, seconds):
        return lambda threads, repeats, baseline: seen.append((name, threads, repeats, baseline)) or seconds

    groups = (
        Group("first", times("first", {"a": 3.0, "b": 2.0}), (FASTER,)),
        Group("second", times("second", {"c": 10.0, "d": 1.0}), (SLOWER,)),
    )
    monkeypatch.setattr(targets, "GROUPS", groups)
    return seen


@pytest.mark.parametrize(
    ("target", "ratio", "expected"),
    [
        (FASTER, 1.5, "aim reached"),
        (FASTER, 1.504, "met"),
        (FASTER, 1.51, "met"),
        (FASTER, 2.01, "not met"),
        (SLOWER, 15, "aim reached"),
        (SLOWER, 8, "met"),
        (SLOWER, 7.9, "not met"),
    ],
)
def test_a_ratio_is_compared_with_both_bounds(target, ratio, expected):
    assert targets.verdict(target, ratio) == expected


def test_each_target_is_a_ratio_of_two_times_of_its_group(measured):
    rows = targets.measure_targets(["first", "second"], [1, 2], 3, "python")["measurements"]
    assert [(row["what"], row["threads"], row["ratio"]) for row in rows] == [
        ("a / b", 1, 1.5),
        ("a / b", 2, 1.5),
        ("c / d", 1, 10),
    ]
    # The second group has no target for two threads.
    assert measured == [("first", 1, 3, "python"), ("first", 2, 3, "python"), ("second", 1, 3, "python")]


def test_pieces_that_were_measured_before_are_kept(measured):
    earlier = targets.measure_targets(["first"], [1], 3)
    earlier["measurements"][0]["ratio"] = 99
    assert len(targets.measure_targets(["second"], [1], 3, earlier=earlier)["measurements"]) == 2
    again = targets.measure_targets(["first"], [1], 3, earlier=earlier)
    assert [row["ratio"] for row in again["measurements"]] == [1.5]


def test_a_target_without_its_contenders_is_left_out(measured, monkeypatch):
    monkeypatch.setattr(targets, "GROUPS", (Group("first", lambda *_: {"a": 1.0}, (FASTER,)),))
    assert targets.measure_targets(["first"], [1], 3)["measurements"] == []


def test_the_chart_shows_every_ratio_in_the_color_of_its_verdict(measured):
    result = targets.measure_targets(["first", "second"], [1], 3)
    (axis,) = charts.target_chart(result).axes
    assert [text.get_text() for text in axis.texts] == ["1.5", "10"]
    assert [to_hex(bar.get_facecolor()) for bar in axis.patches] == [charts.COLORS["ours"], "#8fbfa8"]
    assert [bar.get_width() for bar in axis.patches] == [0.75, 0.8]


def test_the_command_knows_all_groups():
    assert tuple(group.name for group in GROUPS) == bench._TARGET_GROUPS


@pytest.mark.slow
def test_every_contender_of_a_target_is_measured(monkeypatch, tmp_path, capsys):
    for name in ("amazon", "cora"):
        monkeypatch.setitem(graphs.SIZES, name, graphs.Size("tiny", 60, 400))
    monkeypatch.setattr(target_steps, "EPOCHS", 1)
    arguments = [
        "--groups",
        "layers",
        "new-graphs",
        "busy",
        "--threads",
        "1",
        "2",
        "--repeats",
        "1",
        "-o",
        str(tmp_path),
    ]
    assert main(["bench", "targets", *arguments]) == 0
    rows = json.loads((tmp_path / "targets.json").read_text())["measurements"]
    expected = [(t.what, n) for g in GROUPS[:3] for t in g.targets for n in (1, 2) if t.threads in (None, n)]
    assert sorted((row["what"], row["threads"]) for row in rows) == sorted(expected)
    assert all(row["ratio"] > 0 for row in rows)
    assert "PyG PNAConv / ours with λ1 = 0" in capsys.readouterr().out
    assert (tmp_path / "targets.png").exists()


def test_the_table_of_the_benchmarks_is_the_recorded_one():
    record = json.loads((ROOT / "benchmarks/results/targets.json").read_text(encoding="utf-8"))
    assert targets.markdown_table(record) in (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
