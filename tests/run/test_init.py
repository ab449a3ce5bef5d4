"""`lcat init`: the folder that it writes works as its README says."""

import pytest

from lcat_run import cli
from lcat_run.sweep.grid import read_grid


@pytest.mark.slow
def test_a_new_study_is_swept_and_tabulated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "my_study"]) == 0
    assert "next: cd my_study && lcat sweep grid.yaml && lcat table my_study" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "my_study")
    assert cli.main(["sweep", "grid.yaml", "-j", "1", "seeds", "2", "optim.max_epoch", "3"]) == 0
    assert cli.main(["table", "my_study"]) == 0
    printed = capsys.readouterr().out
    assert all(model in printed for model in ("GAT", "L-CAT", "cosine", "mine"))


@pytest.mark.parametrize(("folder", "message"), [("here", "here exists already"), ("a b", "must be letters, digits")])
def test_nothing_is_overwritten(tmp_path, monkeypatch, capsys, folder, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.txt").touch()
    assert cli.main(["init", folder]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["here", "mine.txt"]


def test_a_name_that_yaml_reads_as_a_number_stays_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "2024"]) == 0
    assert read_grid(tmp_path / "2024" / "grid.yaml").name == "2024"
