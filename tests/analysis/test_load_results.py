from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_results import FakeSweep, fail_run, invent_result, write_sweep

from lcat_analysis.history import read_history, read_lambdas
from lcat_analysis.load import load
from lcat_core.claims import Claim
from lcat_core.errors import ResultsError
from lcat_core.outcomes import Outcome

SMALL = FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=3, histories=False, axes={}, over=())


def test_every_finished_run_is_a_row_with_its_metrics_and_hyperparameters(results):
    assert len(results.runs) == 5 * 4 * 2 * 4
    row = results.runs.iloc[0]
    result = json.loads(Path(row["path"], "result.json").read_text())
    assert row["test.accuracy"] == result["test"]["accuracy"]
    assert row["val.loss"] == result["val"]["loss"]
    assert row["optim.base_lr"] == result["params"]["optim.base_lr"]
    assert (row["dataset"], row["avg_degree"]) == (result["dataset"]["name"], result["dataset"]["avg_degree"])


def test_runs_without_a_result_are_named_with_their_reason(tmp_path):
    folder = write_sweep(tmp_path, SMALL)
    failed, paused, started, incomplete, missing = sorted((folder / "runs").iterdir())[:5]
    fail_run(failed, "RuntimeError: out of memory", attempts=3)
    (paused / "result.json").unlink()
    (paused / "checkpoint.pt").touch()
    (started / "result.json").unlink()
    (incomplete / "result.json").write_text('{"schema": 1, "run_id"')
    shutil.rmtree(missing)
    results = load(folder)
    problems = results.problems.set_index("run_id")
    assert problems["state"].to_dict() == {
        failed.name: "failed",
        paused.name: "paused",
        started.name: "missing",
        incomplete.name: "missing",
        missing.name: "missing",
    }
    assert problems.loc[failed.name, "detail"] == "RuntimeError: out of memory"
    assert results.counts() == {"done": 1, "paused": 1, "failed": 1, "missing": 2, "unreadable": 1}
    assert results.sweeps[0].expected == 6


def test_an_unfinished_run_has_the_state_that_its_files_tell(tmp_path):
    folder = write_sweep(tmp_path, FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=4, axes={}, over=()))
    runs = sorted((folder / "runs").iterdir())
    for run_dir in runs:
        (run_dir / "result.json").unlink()
    running, paused, killed, failed, full, dead, checkpoint, _ = runs
    claims = {
        paused: {"left": "paused"},
        killed: {"left": "killed", "detail": "out of memory"},
        dead: {"owner": {"pid": 1, "host": "elsewhere"}, "since": 1.0},
    }
    for run_dir, content in claims.items():
        (run_dir / "claim.json").write_text(json.dumps(content))
    (failed / "failed.json").write_text(json.dumps({"error": "ValueError: no such thing"}))
    (full / "failed.json").write_text(json.dumps({"error": "OSError: …", "cause": "disk full"}))
    (checkpoint / "checkpoint.pt").touch()
    claim = Claim.take(running)
    try:
        problems = load(folder).problems
    finally:
        claim.release(Outcome.DONE)
    expected = ["running", "paused", "killed", "failed", "killed", "killed", "paused", "missing"]
    assert dict(zip(problems["run_id"], problems["state"], strict=True)) == {
        run_dir.name: state for run_dir, state in zip(runs, expected, strict=True)
    }
    assert set(problems["exclusion"]) == {""}


def test_missing_runs_are_not_guessed_without_a_list_of_runs(tmp_path):
    folder = write_sweep(tmp_path, SMALL)
    shutil.rmtree(sorted((folder / "runs").iterdir())[0])
    (folder / "runs.jsonl").unlink()
    assert load(folder).counts() == {"done": 5}


@pytest.mark.parametrize("text", ["[]", "3", '"x"', '{"run_id": "a"}', '{"run_id": "a", "model": "b", "dataset": 3}'])
def test_a_result_of_another_shape_is_unreadable(tmp_path, text):
    folder = write_sweep(tmp_path, SMALL)
    (sorted((folder / "runs").iterdir())[0] / "result.json").write_text(text)
    results = load(folder)
    assert results.counts() == {"done": 5, "unreadable": 1}
    assert list(results.problems["state"]) == ["failed"], "as `lcat status` shows it: the file is left as it is"


def test_a_run_whose_metric_is_not_a_number_is_listed_as_diverged_and_kept(tmp_path):
    folder = write_sweep(tmp_path, SMALL)
    path = sorted((folder / "runs").iterdir())[0] / "result.json"
    result = json.loads(path.read_text())
    result["test"]["accuracy"] = None
    path.write_text(json.dumps(result))
    results = load(folder)
    assert results.counts() == {"done": 5, "diverged": 1}
    assert results.problems.iloc[0]["detail"] == "not a number: test.accuracy"
    assert math.isnan(results.runs.set_index("run_id").loc[result["run_id"], "test.accuracy"])


def change_first_result(folder: Path, **changes) -> str:
    """Change fields of one result; returns the name of its run."""
    run_dir = sorted((folder / "runs").iterdir())[0]
    path = run_dir / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return run_dir.name


def test_counts_give_the_exact_accuracy(tmp_path):
    folder = write_sweep(tmp_path, SMALL)
    counts = {"test": {"correct": 351, "total": 407}, "val": {"correct": 1, "total": 3}}
    name = change_first_result(
        folder, test={"accuracy": 0.8624078631401062}, val={"accuracy": 0.3333333432674408}, counts=counts
    )
    row = load(folder).runs.set_index("run_id").loc[name]
    assert (row["test.accuracy"], row["val.accuracy"]) == (351 / 407, 1 / 3)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"correct": 3}, "`counts.test` must have whole numbers `correct` and `total`"),
        ({"correct": 3, "total": 0}, "`counts.test` must have whole numbers"),
        ([3, 4], "`counts.test` must have whole numbers"),
        ({"correct": 3, "total": 4}, "`counts.test` is 3 of 4, but test.accuracy is 0.5"),
    ],
)
def test_counts_that_contradict_the_metrics_are_named(tmp_path, counts, message):
    folder = write_sweep(tmp_path, SMALL)
    change_first_result(folder, test={"accuracy": 0.5}, counts={"test": counts})
    results = load(folder)
    assert results.counts() == {"done": 5, "unreadable": 1}
    assert message in results.problems["detail"].iloc[0]


def test_a_folder_of_sweeps_is_read_as_one(tmp_path):
    write_sweep(tmp_path, SMALL)
    write_sweep(tmp_path, FakeSweep(name="more", models=("gat",), datasets=("GitHub",), seeds=2, axes={}, over=()))
    results = load(tmp_path)
    assert results.runs["sweep"].value_counts().to_dict() == {"real": 6, "more": 2}


def test_the_same_run_in_two_folders_is_refused(tmp_path):
    folder = write_sweep(tmp_path, SMALL)
    shutil.copytree(folder, tmp_path / "copy")
    with pytest.raises(ResultsError, match=r"the same run, .*, is in two folders: .*copy.* and .*real"):
        load(tmp_path)


def test_an_empty_folder_is_an_error_that_says_what_was_expected(tmp_path):
    with pytest.raises(ResultsError, match=r"no runs in .*: expected runs/<run id>/result.json"):
        load(tmp_path)


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(ResultsError, match=r"is missing"):
        load(tmp_path / "nowhere")


def test_a_grid_that_is_not_yaml_is_an_error_that_names_the_file(tmp_path):
    folder = write_sweep(tmp_path, SMALL)
    (folder / "grid.yaml").write_text("models: [")
    with pytest.raises(ResultsError, match=r"grid.yaml is not valid YAML"):
        load(folder)


def test_runs_of_an_earlier_version_of_the_grid_are_left_out_and_named(tmp_path):
    folder = write_sweep(tmp_path, SMALL)
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    lines[0]["in_grid"] = False
    (folder / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    results = load(folder)
    assert results.counts() == {"done": 5, "superseded": 1}
    assert lines[0]["run_id"] not in set(results.runs["run_id"])
    assert results.sweeps[0].expected == 5


def test_an_axis_of_mappings_stands_for_the_keys_it_sets(tmp_path):
    folder = write_sweep(tmp_path, SMALL)
    text = (folder / "grid.yaml").read_text().split("axes:")[0]
    text += "axes: {size: [{gnn.dim_inner: 32, lcat.heads: 4}, {gnn.dim_inner: 8, lcat.heads: 1}]}\n"
    (folder / "grid.yaml").write_text(text + "select: {over: [size]}\nmatch: [size, optim.base_lr]\n")
    grid = load(folder).grid
    assert grid["select"]["over"] == ["gnn.dim_inner", "lcat.heads"]
    assert grid["match"] == ["gnn.dim_inner", "lcat.heads", "optim.base_lr"]


def test_a_sweep_json_that_cannot_be_read_is_named(tmp_path):
    folder = write_sweep(tmp_path, SMALL)
    (folder / "sweep.json").write_text('{"created": ')
    with pytest.raises(ResultsError, match=r"sweep.json is not valid"):
        load(folder)


@pytest.mark.parametrize("line", ["3", "[]", '{"model": "gat"}', '{"run', b"\xff"])
def test_a_damaged_line_of_the_list_of_runs_is_skipped_and_named(tmp_path, line):
    folder = write_sweep(tmp_path, SMALL)
    with (folder / "runs.jsonl").open("ab") as file:
        file.write(line if isinstance(line, bytes) else line.encode())
    results = load(folder)
    assert results.counts() == {"done": 6}
    (warning,) = results.warnings
    assert warning.startswith(f"{folder / 'runs.jsonl'} has 1 damaged line, skipped")


@pytest.mark.parametrize("name", ["grid.yaml", "sweep.json"])
def test_a_file_of_other_bytes_than_utf8_is_named(tmp_path, name):
    folder = write_sweep(tmp_path, SMALL)
    (folder / name).write_bytes(b"{\xff")
    with pytest.raises(ResultsError, match=name):
        load(folder)


@pytest.mark.parametrize("text", ["", "epoch,layer\n0,0\n"])
def test_a_lambda_table_that_cannot_be_read_is_named(tmp_path, text):
    (tmp_path / "lambdas.csv").write_text(text)
    with pytest.raises(ResultsError, match=r"lambdas.csv is not a table of λ"):
        read_lambdas(tmp_path)


def test_histories_are_read_when_asked_for(results):
    runs = results.runs.set_index("model")
    path = runs.loc["lcat", "path"].iloc[0]
    assert list(read_history(path, "test")["epoch"]) == list(range(12))
    assert set(read_lambdas(path)["layer"]) == {0, 1, 2, 3}
    assert read_lambdas(runs.loc["cat", "path"].iloc[0]).empty


def test_ten_thousand_runs_load(tmp_path):
    folder = tmp_path / "big"
    sweep = FakeSweep(histories=False)
    for i in range(10_000):
        run = folder / "runs" / f"r{i}"
        run.mkdir(parents=True)
        if i == 0:
            result = invent_result(sweep, "lcat", "Cora", {"optim.base_lr": 0.01}, 0, 0)
        (run / "result.json").write_text(json.dumps(result | {"run_id": f"r{i}", "seed": i}))
    assert len(load(folder).runs) == 10_000


def test_importing_the_package_brings_no_torch_matplotlib_or_statsmodels():
    code = (
        "import sys, lcat_analysis.load, lcat_analysis.compare, lcat_analysis.report, lcat_analysis.trend;"
        "print([m for m in ('torch', 'matplotlib', 'statsmodels', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_old_or_newer_result_is_read_as_far_as_it_goes(tmp_path):
    folder = write_sweep(tmp_path, SMALL)
    newer, poorer, richer = sorted((folder / "runs").iterdir())[:3]
    for run_dir, change in (
        (newer, lambda result: result.update(schema=2)),
        (poorer, lambda result: [result.pop(key) for key in ("timing", "lambdas", "versions", "best_epoch")]),
        (richer, lambda result: result.update(unheard_of={"a": 1})),
    ):
        result = json.loads((run_dir / "result.json").read_text())
        change(result)
        (run_dir / "result.json").write_text(json.dumps(result))
    results = load(folder)
    assert results.counts() == {"done": 5, "unreadable": 1}
    assert "schema 2, but this version reads schema 1" in results.problems["detail"][0]


@pytest.mark.parametrize(
    "changes",
    [
        {"counts": [1]},
        {"counts": {"train": {"total": "10"}, "test": {"correct": 5, "total": "10"}}},
        {"counts": {"test": {"correct": math.inf, "total": 10}}},
        {"settings": {"dataset.split": 0.8}},
        {"settings": [1]},
    ],
)
def test_a_field_of_the_wrong_form_names_the_file(tmp_path, changes):
    folder = write_sweep(tmp_path, SMALL)
    name = change_first_result(folder, test={"accuracy": 0.5}, **changes)
    results = load(folder)
    assert results.counts() == {"done": 5, "unreadable": 1}
    assert f"{name}/result.json" in results.problems["detail"].iloc[0]
