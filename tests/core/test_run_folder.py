"""The folder of a run: its result, its state, and the list of runs, whatever state the files are in."""

import json
import math
import os
import time

import pytest

from lcat_core.claims import Claim
from lcat_core.errors import ResultsError
from lcat_core.outcomes import Outcome
from lcat_core.run_folder import (
    RunRecord,
    State,
    damaged_lines_text,
    is_done,
    load_result,
    parse_result,
    read_result,
    read_run_records,
    states_in_order,
    unfinished_state,
    why_unusable,
)

RESULT = {
    "schema": 1,
    "run_id": "lcat-Cora-s0-0123456789",
    "model": "lcat",
    "seed": 0,
    "split_seed": 3,
    "dataset": {"name": "Cora", "nodes": 2708, "edges": 10556, "avg_degree": 3.9},
    "params": {"optim.base_lr": 0.01},
    "settings": {"optim.base_lr": 0.01, "seed": 0},
    "best_epoch": 7,
    "train": {"accuracy": 1.0},
    "val": {"accuracy": None},
    "test": {"accuracy": 0.8125, "loss": 0.5},
    "lambdas": [[0.5, 0.25]],
    "timing": {"seconds": 12},
}
RECORD = RunRecord("lcat-Cora-s0-0123456789", "lcat", "Cora", 0, 3, {"lcat.heads": 4})


def changed(**fields):
    return {**RESULT, **fields}


def test_a_result_is_typed():
    result = parse_result(RESULT, "result.json")
    assert (result.run_id, result.model, result.seed, result.split_seed) == ("lcat-Cora-s0-0123456789", "lcat", 0, 3)
    assert result.metrics["test.accuracy"] == 0.8125
    assert math.isnan(result.metrics["val.accuracy"])
    assert (result.best_epoch, result.seconds, result.lambdas) == (7, 12.0, [[0.5, 0.25]])
    assert result.document == RESULT


@pytest.mark.parametrize(
    "timing", ["soon", None, {"seconds": "soon"}, {"seconds": float("inf")}, {"seconds": True}, []]
)
def test_a_result_without_a_usable_duration_is_still_a_result(timing):
    assert parse_result(changed(timing=timing), "result.json").seconds is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "must hold a JSON object"),
        ({}, "has schema none, but this version reads schema 1"),
        (changed(schema=2), "has schema 2"),
        (changed(schema=True), "has schema True"),
        (changed(schema="1"), "has schema '1'"),
        (changed(run_id=["x"]), "`run_id` must be text"),
        (changed(run_id=""), "`run_id` must be text"),
        (changed(model=None), "`model` must be text, got none"),
        (changed(seed=1.5), "`seed` must be a whole number"),
        (changed(seed=float("inf")), "`seed` must be a whole number"),
        (changed(seed=True), "`seed` must be a whole number"),
        (changed(seed=10**400), "`seed` must be a whole number"),
        (changed(test={"accuracy": 10**400}), "`test.accuracy` must be a number or null"),
        (changed(dataset={"name": "Cora", "nodes": 10**400}), "`nodes` must be a finite number"),
        (changed(split_seed="0"), "`split_seed` must be a whole number"),
        (changed(dataset="Cora"), "`dataset` must be an object"),
        (changed(dataset={}), "`name` must be text"),
        (changed(dataset={"name": "Cora", "nodes": "many"}), "`nodes` must be a finite number"),
        (changed(test=[1]), "`test` must be an object"),
        (changed(test={"accuracy": "high"}), "`test.accuracy` must be a number or null"),
        (changed(test={"accuracy": True}), "`test.accuracy` must be a number or null"),
        (changed(lambdas={"1": 2}), "`lambdas` must be a list"),
        (changed(params=[1]), "`params` must be an object"),
    ],
)
def test_a_malformed_result_is_one_message_with_its_place(document, message):
    with pytest.raises(ResultsError) as error:
        parse_result(document, "runs/x/result.json")
    assert message in str(error.value)
    assert str(error.value).startswith("runs/x/result.json")
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_a_result_may_lack_what_is_optional():
    required = {key: RESULT[key] for key in ("schema", "run_id", "model", "seed")}
    result = parse_result({**required, "dataset": {"name": "Cora"}}, "result.json")
    assert (result.split_seed, result.best_epoch, result.lambdas, result.params) == (0, None, [], {})


def test_only_a_complete_result_proves_that_a_run_is_done(tmp_path):
    text = json.dumps(RESULT)
    path = tmp_path / "result.json"
    assert not is_done(tmp_path)
    for length in range(0, len(text), 7):
        path.write_text(text[:length])
        assert not is_done(tmp_path)
        assert why_unusable(tmp_path) is None  # incomplete: the run is executed again
    path.write_text(text)
    assert is_done(tmp_path)
    assert read_result(tmp_path) == load_result(tmp_path)


def test_a_complete_file_of_another_version_is_named_and_not_a_result(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps(changed(schema=2)))
    assert not is_done(tmp_path)
    assert "has schema 2, but this version reads schema 1" in why_unusable(tmp_path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_something_else_in_the_place_of_a_result_is_named_and_nothing_blocks(tmp_path, make):
    make(tmp_path / "result.json")
    assert not is_done(tmp_path)
    assert "result.json cannot be read" in why_unusable(tmp_path)


def test_a_link_to_nothing_in_the_place_of_a_result_is_not_one(tmp_path):
    (tmp_path / "result.json").symlink_to("/nowhere")
    assert not is_done(tmp_path)
    assert why_unusable(tmp_path) is None


def test_a_run_whose_files_cannot_be_read_has_failed(tmp_path):
    (tmp_path / "claim.json").symlink_to(tmp_path / "claim.json")  # refers to itself
    assert unfinished_state(tmp_path).state is State.FAILED


def test_a_result_that_is_nested_too_deeply_is_not_one(tmp_path):
    (tmp_path / "result.json").write_text("[" * 100_000 + "]" * 100_000)
    assert not is_done(tmp_path)
    with pytest.raises(ResultsError, match="nested too deeply"):
        load_result(tmp_path)


def release(run_dir, outcome, detail=""):
    Claim.take(run_dir).release(outcome, detail)


def fail(run_dir, error, **fields):
    (run_dir / "failed.json").write_text(json.dumps({"error": error, **fields}))


def test_a_folder_without_files_is_missing(tmp_path):
    assert unfinished_state(tmp_path).state is State.MISSING
    assert unfinished_state(tmp_path / "none").state is State.MISSING


def test_a_claimed_run_is_running(tmp_path):
    claim = Claim.take(tmp_path)
    state = unfinished_state(tmp_path)
    claim.release(Outcome.PAUSED)
    assert state.state is State.RUNNING
    assert state.detail.startswith(f"process {os.getpid()} on ")


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(Outcome.PAUSED, State.PAUSED), (Outcome.KILLED, State.KILLED), (Outcome.FAILED, State.FAILED)],
)
def test_the_claim_says_how_the_last_attempt_ended(tmp_path, outcome, state):
    release(tmp_path, outcome, "because")
    assert (unfinished_state(tmp_path).state, unfinished_state(tmp_path).detail) == (state, "because")


def test_a_run_whose_launcher_died_is_killed(tmp_path):
    (tmp_path / "claim.json").write_text(json.dumps({"owner": {"pid": 7, "host": "far"}, "job": "12", "since": 1.0}))
    state = unfinished_state(tmp_path)
    assert (state.state, state.detail) == (State.KILLED, "its launcher died: process 7 on far, job 12")


def test_a_failure_has_its_error(tmp_path):
    fail(tmp_path, "ValueError: bad")
    assert unfinished_state(tmp_path).detail == "ValueError: bad"
    assert unfinished_state(tmp_path).state is State.FAILED
    release(tmp_path, Outcome.FAILED, "what the claim says")
    assert unfinished_state(tmp_path).detail == "ValueError: bad"


@pytest.mark.parametrize(
    "fields",
    [{"error": "OSError", "cause": "disk full"}, {"error": "OSError: [Errno 28] No space left on device: 'log.txt'"}],
)
def test_a_full_disk_is_not_the_fault_of_the_run(tmp_path, fields):
    fail(tmp_path, **fields)
    assert unfinished_state(tmp_path).state is State.KILLED


def test_a_failure_before_the_last_attempt_does_not_count(tmp_path):
    fail(tmp_path, "ValueError: bad")
    claim = {"owner": {"host": "here", "pid": 1, "started": 1}, "since": time.time() + 60}
    (tmp_path / "claim.json").write_text(json.dumps(claim))
    assert unfinished_state(tmp_path).state is State.KILLED


def test_a_checkpoint_without_a_claim_is_paused(tmp_path):
    (tmp_path / "checkpoint.pt").touch()
    assert unfinished_state(tmp_path).state is State.PAUSED


@pytest.mark.parametrize("content", ["", "{", "[]", '{"error": 3}'])
def test_a_damaged_failure_file_does_not_stop_anything(tmp_path, content):
    (tmp_path / "failed.json").write_text(content)
    assert unfinished_state(tmp_path).state in (State.MISSING, State.FAILED)


def test_a_record_is_one_line_and_comes_back():
    assert RunRecord.parse(json.loads(json.dumps(RECORD.line()))) == RECORD
    assert "in_grid" not in RECORD.line()
    old = RunRecord.parse({**RECORD.line(), "in_grid": False, "colour": "red"})
    assert not old.in_grid
    assert old.line()["in_grid"] is False


def test_the_settings_of_a_run_are_the_common_ones_its_own_and_its_seed():
    assert RECORD.settings({"lcat.heads": 1, "x": 2, "seed": 9}) == {"lcat.heads": 4, "x": 2, "seed": 0}


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        "text",
        {},
        {**RECORD.line(), "run_id": ["x"]},
        {**RECORD.line(), "run_id": "../elsewhere"},
        {**RECORD.line(), "seed": "0"},
        {**RECORD.line(), "seed": 1.5},
        {**RECORD.line(), "seed": True},
        {**RECORD.line(), "params": [1]},
    ],
)
def test_what_is_not_a_record_is_refused(content):
    with pytest.raises(ValueError, match="not a run record"):
        RunRecord.parse(content)


def test_damaged_lines_are_skipped_and_counted(tmp_path):
    path = tmp_path / "runs.jsonl"
    assert read_run_records(path) == ([], 0)
    path.write_text(f"{json.dumps(RECORD.line())}\n{{\n\n{json.dumps(RECORD.line())[:30]}")
    records, damaged = read_run_records(path)
    assert (records, damaged) == ([RECORD], 3)
    assert "has 3 damaged lines, skipped; rerun" in damaged_lines_text(path, damaged)
    assert "has 1 damaged line, skipped" in damaged_lines_text(path, 1)


def test_states_have_one_order():
    assert states_in_order([State.MISSING, State.DONE, State.KILLED, State.DONE]) == [
        State.DONE,
        State.KILLED,
        State.MISSING,
    ]
