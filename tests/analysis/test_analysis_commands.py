"""`lcat table | compare | trend | plot | report`, through the command line."""

from __future__ import annotations

import csv
import errno
import os
from pathlib import Path

import pytest
from fake_results import FakeSweep, write_sweep

from lcat_run.cli import main


@pytest.fixture
def workplace(sweep_folder: Path, tmp_path: Path, monkeypatch) -> Path:
    """A directory where ./results holds the sweep ``real``."""
    (tmp_path / "results").symlink_to(sweep_folder.parent)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_is_printed_for_a_sweeps_name(workplace, capsys):
    assert main(["table", "real"]) == 0
    assert "Test accuracy (%)" in capsys.readouterr().out


def test_a_table_is_printed_for_a_directory(sweep_folder, capsys):
    assert main(["table", str(sweep_folder)]) == 0
    assert "L-CAT" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "start"), [("t.md", "**Test"), ("t.tex", "% needs"), ("t.csv", "model,dataset")])
def test_the_suffix_of_the_output_is_its_format(workplace, name, start):
    assert main(["table", "real", "-o", f"new/{name}"]) == 0
    assert Path("new", name).read_text().startswith(start)


def test_a_directory_gets_a_file_of_the_asked_format(workplace):
    assert main(["compare", "real", "-o", "out", "--format", "csv"]) == 0
    rows = list(csv.DictReader(Path("out/compare.csv").read_text().splitlines()))
    assert {row["verdict"] for row in rows} <= {"better", "worse", "equivalent", "suggestive", "undetermined"}
    assert len(rows) == 8


def test_a_baseline_can_be_named(workplace, capsys):
    assert main(["compare", "real", "--baseline", "lcat=gcn"]) == 0
    assert "L-CAT − GCN" in capsys.readouterr().out


def test_the_trend_of_the_paper_is_printed_and_drawn(workplace, capsys):
    assert main(["trend", "--published", "-o", "trend.pdf"]) == 0
    assert "+0.0302" in capsys.readouterr().out
    assert Path("trend.pdf").exists()


def test_the_trend_of_a_sweep_is_drawn_in_all_formats(workplace):
    assert main(["trend", "real", "-o", "figures"]) == 0
    assert sorted(p.name for p in Path("figures").iterdir()) == [
        "trend-points.csv", "trend.csv", "trend.pdf", "trend.png", "trend.svg",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["distribution", "curves", "paper"])
def test_a_figure_is_drawn(workplace, kind):
    assert main(["plot", "real", kind, "-o", "f", "--format", "svg"]) == 0
    assert [p.name for p in Path("f").iterdir()] == [f"{kind}.svg"]


def test_lambda_over_training_is_drawn_for_one_dataset(workplace):
    assert main(["plot", "real", "lambdas", "--dataset", "Cora", "-o", "l.png"]) == 0
    assert Path("l.png").exists()


def test_the_report_goes_beside_the_results_or_where_asked(tmp_path, capsys):
    sweep = FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=2, axes={}, over=(), histories=False)
    folder = write_sweep(tmp_path, sweep)
    assert main(["report", str(folder)]) == 0
    assert (folder / "report.html").exists()
    assert capsys.readouterr().out == f"wrote {folder / 'report.html'}\n"
    assert main(["report", str(folder), "-o", str(tmp_path / "talk.html")]) == 0
    assert (tmp_path / "talk.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["table", "rael"],
            "'rael' is neither a directory nor a sweep under ./results (there are real); did you mean",
        ),
        (["table", "real", "--metric", "acuracy"], "unknown metric: 'acuracy'"),
        (["table", "empty"], "no runs in empty: expected"),
        (["report", "empty"], "no runs in empty: expected"),
        (["compare", "real", "--baseline", "cat=gatt"], "the baseline of 'cat', 'gatt', has no finished run"),
        (["compare", "real", "--baseline", "cat"], "--baseline expects MODEL=BASELINE"),
        (["compare", "real", "--alpha", "2"], "alpha must be between 0 and 1"),
        (["table", "real", "-o", "t.doc"], "cannot tell the format of t.doc"),
        (["table", "real", "-o", "file/t.md"], "file: File exists"),
        (["report", "real", "-o", "file/r.html"], "file: File exists"),
        (["trend"], "expected either RESULTS or --published"),
        (["plot", "real", "noise"], "no level of noise varies"),
        (["plot", "real", "csbm"], "not a CSBM sweep"),
        (["plot", "real", "curves", "--dataset", "Coar"], "no run on 'Coar': the datasets are"),
        (["plot", "real", "curves", "-o", "c.jpg"], "cannot write c.jpg"),
        (["trend", "real", "-o", "t.jpg"], "cannot write t.jpg"),
    ],
)
def test_a_mistake_ends_with_status_2_and_one_message(workplace, capsys, arguments, message):
    Path("empty").mkdir()
    Path("file").touch()
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"lcat {arguments[0]}: {message}")
    assert captured.err.count("\n") == 1


def test_an_existing_directory_may_have_a_dot_in_its_name(workplace):
    Path("tmp.x7").mkdir()
    assert main(["table", "real", "-o", "tmp.x7"]) == 0
    assert main(["plot", "real", "paper", "-o", "tmp.x7", "--format", "svg"]) == 0
    assert sorted(p.name for p in Path("tmp.x7").iterdir()) == ["paper.svg", "table.md"]


def test_a_format_that_is_asked_for_wins_over_the_suffix_of_the_file(workplace):
    assert main(["table", "real", "-o", "table.txt", "--format", "csv"]) == 0
    assert Path("table.txt").read_text().startswith("model,dataset")
    assert main(["plot", "real", "paper", "-o", "picture.png", "--format", "pdf"]) == 0
    assert Path("picture.png").read_bytes().startswith(b"%PDF")


def test_nothing_is_left_behind_by_a_report_that_fails(workplace, capsys):
    assert main(["report", "real", "-o", "new/deep/r.html", "--metric", "none"]) == 2
    assert not Path("new").exists()


def test_a_sweep_that_has_not_begun_a_model_is_compared_as_far_as_it_goes(tmp_path, capsys):
    sweep = FakeSweep(models=("gat", "cat", "lcat"), datasets=("Cora",), seeds=3, axes={}, over=(), histories=False)
    folder = write_sweep(tmp_path, sweep)
    for path in folder.glob("runs/lcat-*/result.json"):
        path.unlink()
    assert main(["compare", str(folder)]) == 0
    assert "Refused: L-CAT − GAT: L-CAT has no finished run." in capsys.readouterr().out


def test_runs_without_a_result_are_counted_beside_every_table(tmp_path, capsys):
    sweep = FakeSweep(models=("gat",), datasets=("Cora",), seeds=3, axes={}, over=(), histories=False)
    folder = write_sweep(tmp_path, sweep)
    next(folder.glob("runs/*/result.json")).write_text("{")
    assert main(["table", str(folder)]) == 0
    expected = "2 of 3 runs are sound; 1 unreadable (`lcat report` names them)\n"
    assert capsys.readouterr().err == expected


@pytest.fixture
def two_sweeps(tmp_path: Path) -> str:
    small = {"datasets": ("Cora",), "seeds": 2, "axes": {}, "over": (), "histories": False}
    write_sweep(tmp_path, FakeSweep(name="first", models=("gat",), **small))
    write_sweep(tmp_path, FakeSweep(name="second", models=("lcatv2",), **small))
    return str(tmp_path)


def test_a_folder_of_sweeps_has_one_table_per_sweep(two_sweeps, capsys):
    assert main(["table", two_sweeps]) == 0
    printed = capsys.readouterr().out
    assert printed.count("Test accuracy (%)") == 2
    assert printed.index("== first") < printed.index("GAT") < printed.index("== second") < printed.index("L-CATv2")
    assert "Not tested, because the baseline has no runs here: L-CATv2 (baseline: GATv2)." in printed


def test_other_commands_ask_which_sweep_of_a_folder_is_meant(two_sweeps, capsys):
    assert main(["compare", two_sweeps]) == 2
    assert "holds 2 sweeps: first, second; name one, or read them as one with --join" in capsys.readouterr().err
    assert main(["table", two_sweeps, "--join"]) == 0
    assert capsys.readouterr().out.count("Test accuracy (%)") == 1


def test_where_no_run_can_be_read_the_first_reason_is_given(tmp_path, capsys):
    sweep = FakeSweep(models=("gat",), datasets=("Cora",), seeds=1, axes={}, over=(), histories=False)
    folder = write_sweep(tmp_path, sweep)
    (path,) = folder.glob("runs/*/result.json")
    path.write_text("{")
    assert main(["table", str(folder)]) == 2
    assert (
        f"0 done, 1 unreadable; {path.parent.name}: {path} is incomplete or not valid JSON " in capsys.readouterr().err
    )


def test_a_damaged_configuration_is_one_line(tmp_path, capsys):
    sweep = FakeSweep(models=("gat",), datasets=("Cora",), seeds=1, axes={}, over=(), epochs=2)
    folder = write_sweep(tmp_path, sweep)
    next(folder.glob("runs/*/config.yaml")).write_text("a: [")
    assert main(["plot", str(folder), "paper", "-o", str(tmp_path / "p.svg")]) == 2
    err = capsys.readouterr().err
    assert "config.yaml is not valid YAML" in err
    assert err.count("\n") == 1
    assert main(["plot", str(folder), "lambdas"]) == 2
    assert capsys.readouterr().err == "lcat plot: no chosen run learned λ\n"


def test_a_comparison_without_any_baseline_says_how_to_name_one(tmp_path, capsys):
    sweep = FakeSweep(models=("mine",), datasets=("Cora",), seeds=3, axes={}, over=(), histories=False)
    assert main(["compare", str(write_sweep(tmp_path, sweep))]) == 2
    assert "no baseline is declared: expected --baseline MODEL=BASELINE; models: mine" in capsys.readouterr().err


def test_a_disk_that_is_full_is_reported_without_an_empty_name(workplace, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("lcat_analysis.load.sweeps_below", full)
    assert main(["table", "real"]) == 2
    assert capsys.readouterr().err == "lcat table: No space left on device\n"


def test_pairs_that_cannot_be_tested_end_with_status_2_naming_why(tmp_path, capsys):
    sweep = FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=1, axes={}, over=(), histories=False)
    assert main(["compare", str(write_sweep(tmp_path, sweep))]) == 2
    assert "only seed 0: a paired test needs at least 2 seeds" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["table", "compare", "trend", "plot", "report"])
def test_help_shows_an_example(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"  lcat {command} " in capsys.readouterr().out
