"""Archives: finished runs in one file."""

import gzip
import json
from dataclasses import replace

import pytest

from lcat_core.archive import (
    Archive,
    ArchivedRun,
    collect_runs,
    is_archive,
    merge_archives,
    read_archive,
    restore_run,
    unpack_archive,
    write_archive,
)
from lcat_core.errors import ResultsError
from lcat_core.run_folder import parse_result


def archived(run_id="gat-Cora-s0-0123456789", accuracy=0.5, curves=None):
    document = {
        "schema": 1,
        "run_id": run_id,
        "model": "gat",
        "seed": 0,
        "split_seed": 0,
        "params": {"lcat.lambda1": 1},
        "settings": {"dataset.name": "Cora"},
        "dataset": {"name": "Cora", "nodes": 2708, "edges": 10556, "avg_degree": 3.9},
        "best_epoch": 7,
        "test": {"accuracy": accuracy},
        "lambdas": [[1.0, 0.0]],
        "timing": {"seconds": 1.5},
    }
    return ArchivedRun(parse_result(document, run_id), curves or {}, "real")


def archive(*runs):
    return Archive({"real": {"name": "real", "models": ["gat"]}}, {run.result.run_id: run for run in runs})


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz"])
def test_what_is_written_is_read_again(tmp_path, name):
    runs = archive(archived("b", 0.25, {"test/stats.json": '{"epoch": 0}\n'}), archived("a"))
    write_archive(tmp_path / name, runs)
    again = read_archive(tmp_path / name)
    assert again.grids == runs.grids
    assert list(again.runs) == ["a", "b"]
    assert again.runs["b"] == runs.runs["b"]


def test_equal_results_give_equal_bytes_in_any_order(tmp_path):
    first, second = archived("a"), archived("b", 0.75)
    write_archive(tmp_path / "one.jsonl.gz", archive(first, second))
    write_archive(tmp_path / "two.jsonl.gz", archive(second, first))
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: lines[:-1], "announces 2 runs and holds 1"),
        (lambda lines: [*lines, lines[-1]], "appears twice"),
        (lambda lines: [lines[0], lines[1][:-5], lines[2]], "line 2 is not valid JSON"),
        (lambda lines: lines[1:], "first line must say 'lcat-results'"),
        (lambda lines: [lines[0].replace('"schema":1', '"schema":2'), *lines[1:]], "has schema 2"),
        (lambda lines: [lines[0], lines[1].replace('"seed":0', '"seed":"x"'), lines[2]], "`seed` must be a whole"),
        (lambda lines: [], "first line must say"),
    ],
)
def test_a_damaged_archive_is_refused_with_its_place(tmp_path, damage, message):
    path = tmp_path / "runs.jsonl"
    write_archive(path, archive(archived("a"), archived("b")))
    path.write_text("\n".join(damage(path.read_text().splitlines())))
    with pytest.raises(ResultsError, match=message):
        read_archive(path)


@pytest.mark.parametrize("cut", [10, 100, -1])
def test_a_truncated_compressed_archive_is_refused(tmp_path, cut):
    path = tmp_path / "runs.jsonl.gz"
    write_archive(path, archive(archived("a"), archived("b")))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ResultsError, match=r"incomplete|damaged"):
        read_archive(path)


def test_a_flipped_bit_in_a_compressed_archive_is_noticed(tmp_path):
    path = tmp_path / "runs.jsonl.gz"
    write_archive(path, archive(archived("a"), archived("b")))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    with pytest.raises(ResultsError):
        read_archive(path)


def test_a_missing_archive_is_named(tmp_path):
    with pytest.raises(ResultsError, match=r"none.jsonl cannot be read: No such file"):
        read_archive(tmp_path / "none.jsonl")


def test_merging_keeps_every_run_once():
    joined = merge_archives([("one", archive(archived("a"))), ("two", archive(archived("a"), archived("b")))])
    assert sorted(joined.runs) == ["a", "b"]


def test_merging_refuses_sources_that_disagree():
    with pytest.raises(ResultsError, match="two has other numbers for the run a"):
        merge_archives([("one", archive(archived("a", 0.5))), ("two", archive(archived("a", 0.6)))])


def test_names_of_archives(tmp_path):
    assert is_archive(tmp_path / "x.jsonl") and is_archive(tmp_path / "x.jsonl.gz")
    assert not is_archive(tmp_path / "x.csv") and not is_archive(tmp_path / "jsonl")


def test_the_file_is_plain_json_lines(tmp_path):
    write_archive(tmp_path / "x.jsonl.gz", archive(archived("a")))
    header, line = gzip.decompress((tmp_path / "x.jsonl.gz").read_bytes()).splitlines()
    assert json.loads(header)["runs"] == 1
    assert json.loads(line)["result"]["test"] == {"accuracy": 0.5}


def test_a_folder_is_collected_and_restored(tmp_path):
    run = archived("a", curves={"test/stats.json": "{}\n", "lambdas.csv": "epoch\n"})
    restore_run(run, tmp_path / "real" / "runs" / "a")
    (tmp_path / "real" / "runs" / "unfinished").mkdir()
    found, skipped = collect_runs(tmp_path / "real", with_curves=True)
    assert found.runs == {"a": run}
    assert not skipped


def test_what_cannot_be_collected_is_named(tmp_path):
    runs = tmp_path / "real" / "runs"
    restore_run(archived("a"), runs / "b")
    (runs / "c").mkdir()
    (runs / "c" / "result.json").write_text("{")
    found, skipped = collect_runs(tmp_path / "real")
    assert not found.runs
    assert "belongs to another run, a" in skipped[0] and "is incomplete" in skipped[1]


def test_an_archive_names_no_host(tmp_path):
    run_dir = tmp_path / "real" / "runs" / "a"
    restore_run(archived("a"), run_dir)
    content = json.loads((run_dir / "result.json").read_text())
    (run_dir / "result.json").write_text(json.dumps({**content, "timing": {"seconds": 1, "host": "node7"}}))
    found, _ = collect_runs(tmp_path / "real")
    assert found.runs["a"].result.document["timing"] == {"seconds": 1}


def test_curves_cannot_leave_the_folder(tmp_path):
    restore_run(archived("a", curves={"../../evil": "x"}), tmp_path / "runs" / "a")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["result.json"]


def test_unpacked_archives_are_folders_of_sweeps(tmp_path):
    unpack_archive(archive(archived("a"), archived("b")), tmp_path)
    found, skipped = collect_runs(tmp_path / "real")
    assert sorted(found.runs) == ["a", "b"] and not skipped


@pytest.mark.parametrize("run_id", ["../evil", "a/b", ".hidden", ""])
def test_ids_that_are_not_plain_names_are_refused(tmp_path, run_id):
    path = tmp_path / "x.jsonl"
    write_archive(path, archive(archived("harmless")))
    path.write_text(path.read_text().replace("harmless", run_id))
    with pytest.raises(ResultsError, match=r"is not the id of a run|`run_id` must be text"):
        read_archive(path)


@pytest.mark.parametrize("name", ["größe", "my cfg", ".hidden"])
def test_every_name_of_a_folder_can_be_that_of_a_sweep(tmp_path, name):
    run = replace(archived("a"), sweep=name)
    write_archive(tmp_path / "x.jsonl", Archive({name: {}}, {"a": run}))
    unpack_archive(read_archive(tmp_path / "x.jsonl"), tmp_path / "out")
    assert (tmp_path / "out" / name / "runs" / "a" / "result.json").is_file()


@pytest.mark.parametrize("name", ["", ".", "..", "../evil", "/evil", "a\0b"])
def test_names_of_sweeps_that_leave_the_folder_are_refused(tmp_path, name):
    write_archive(tmp_path / "x.jsonl", Archive({name: {}}, {}))
    with pytest.raises(ResultsError, match="is not the name of a sweep"):
        read_archive(tmp_path / "x.jsonl")
