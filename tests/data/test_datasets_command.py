from __future__ import annotations

import numpy as np

from lcat_run.cli import main


def test_missing_datasets_are_listed_with_the_published_size_and_where_files_belong(tmp_path, capsys):
    assert main(["datasets", "--dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    cora = next(line for line in lines if line.startswith("Cora "))
    assert " ".join(cora.split()) == "Cora 2,708 10,556 3.90 1,433 7 missing, downloaded when used"
    assert f"GitHub: put github.npz into {tmp_path}/GitHub/raw" in lines
    assert any(line.startswith("KarateClub") and line.endswith("embedded") for line in lines)


def test_listing_writes_nothing_for_datasets_that_are_missing(tmp_path, capsys):
    main(["datasets", "--dir", str(tmp_path / "none")])
    assert not (tmp_path / "none").exists()


def test_a_present_dataset_of_another_size_is_pointed_out(tmp_path, capsys, write_twitch):
    write_twitch(tmp_path)
    assert main(["datasets", "--dir", str(tmp_path), "TwitchEN"]) == 0
    out = capsys.readouterr().out
    assert "present, SIZE DIFFERS" in out
    assert "TwitchEN was published with 7126 nodes, 77774 edges" in out


def test_a_damaged_dataset_does_not_hide_the_others(tmp_path, capsys, write_twitch):
    write_twitch(tmp_path)
    np.savez(tmp_path / "TwitchEN" / "EN" / "raw" / "EN.npz", page_not_found=np.zeros(1))
    assert main(["datasets", "--dir", str(tmp_path), "TwitchEN", "KarateClub"]) == 0
    out = capsys.readouterr().out
    assert "present, UNREADABLE" in out and "KarateClub" in out
    assert "TwitchEN: EN.npz in " in out and "if they are damaged, delete them and fetch them again" in out


def test_an_unknown_name_is_a_user_error(tmp_path, capsys):
    assert main(["datasets", "cora"]) == 2
    assert "did you mean 'Cora'?" in capsys.readouterr().err
