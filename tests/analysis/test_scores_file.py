"""``lcat rank scores.csv``: any table of scores, and what is wrong with it."""

from __future__ import annotations

import pytest

from lcat_analysis.load import load
from lcat_analysis.select import select
from lcat_core.errors import ResultsError
from lcat_run.cli import main

SCORES = """dataset,model,seed,value
A,mine,0,0.81
A,mine,1,0.82
A,gat,0,0.80
A,gat,1,0.79
B,mine,0,0.61
B,mine,1,0.62
B,gat,0,0.62
B,gat,1,0.60
"""


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(SCORES)
    return path


def test_a_table_of_scores_is_read_as_results(scores):
    results = load(scores)
    assert results.runs[["model", "dataset", "seed", "test.value"]].iloc[1].tolist() == ["mine", "A", 1, 0.82]
    assert select(results).values("gat", ("B",)).tolist() == [0.62, 0.60]


def test_rank_compares_and_ranks_it(scores, capsys):
    assert main(["rank", str(scores), "--baseline", "mine=gat"]) == 0
    out = capsys.readouterr().out
    assert "Over 2 datasets, mine is better than GAT on 2 and worse on 0" in out
    assert "mine        1.00" in out


@pytest.mark.parametrize("command", ["table", "compare"])
def test_the_other_commands_read_it_too(scores, command, capsys):
    assert main([command, str(scores), "--baseline", "mine=gat"]) == 0
    assert "mine" in capsys.readouterr().out


def test_lower_may_be_better_and_values_may_be_per_cent(scores, capsys):
    assert main(["rank", str(scores), "--baseline", "mine=gat", "--better", "lower"]) == 0
    assert "better than GAT on 0 and worse on 2" in capsys.readouterr().out


def test_scores_without_seeds_are_ranked_without_intervals(tmp_path, capsys):
    path = tmp_path / "means.csv"
    path.write_text("dataset,model,accuracy\nA,mine,0.8\nA,gat,0.7\nB,mine,0.5\nB,gat,0.6\n")
    assert main(["rank", str(path), "--baseline", "mine=gat"]) == 0
    out = capsys.readouterr().out
    assert "on 1 and worse on 1; the mean difference is 0.00 points" in out
    assert "Without an interval, and not in the pooled estimate: mine − GAT on A" in out


def test_a_folder_holds_every_table_and_figure(scores, tmp_path):
    assert main(["rank", str(scores), "--baseline", "mine=gat", "-o", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"rank.md", "pairs.csv", "ranks.csv", "posthoc.csv", "forest.pdf", "critical_difference.svg"} <= names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "dataset,modle,seed,value\nA,gat,0,1\n",
            "'model' is not among dataset, modle, seed, value; did you mean 'modle'",
        ),
        ("dataset,model,seed,score\nA,gat,0,1\n", "'value' is not among dataset, model, seed, score"),
        ("dataset,model,seed,value\n", "no scores below the header"),
        ("dataset,model,seed,value\nA,gat,0,1\nA,gat,1,8O\n", "line 3: value must be a number, got '8O'"),
        ("dataset,model,seed,value\nA,gat,0,1,7\n", "more fields than the header"),
        ("dataset,model,seed,value\nA,gat,0,1\nA,gat,1,1,7\n", "is not a CSV file"),
        ("dataset,model,seed,value\nA,gat,inf,1\n", "line 2: seed must be a number, got 'inf'"),
        ("dataset,model,seed,value\nA,gat,x,1\n", "line 2: seed must be a number, got 'x'"),
        ("dataset,model,seed,value\nA,gat,0,1\nA,,0,1\n", "line 3: the model is missing"),
        (
            "dataset,model,value\nA,gat,1\nA,gat,2\n",
            "line 3: a second score of dataset A, model gat; if they are repetitions",
        ),
        ('dataset,model,seed,value\n"A', "is not a CSV file"),
        ("", "is not a CSV file"),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(ResultsError) as error:
        load(path)
    assert message in str(error.value)


def test_csv_output_needs_a_folder(scores, capsys):
    assert main(["rank", str(scores), "--format", "csv"]) == 2
    assert "give a directory with -o" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["rank.md", "pairs.csv"])
def test_a_table_is_not_written_through_a_link(scores, tmp_path, name):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).symlink_to(precious)
    assert main(["rank", str(scores), "--baseline", "mine=gat", "-o", str(tmp_path / "out")]) == 0
    assert precious.read_text() == "mine"
