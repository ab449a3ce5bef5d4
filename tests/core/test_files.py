"""Files are complete or absent, links are never written through, and reading never blocks."""

import errno
import json
import os
import threading

import pytest

from lcat_core import files


def test_json_is_written_and_read(tmp_path):
    files.write_json(tmp_path / "a.json", {"λ": [1, 2.5, None]})
    assert files.read_json(tmp_path / "a.json") == {"λ": [1, 2.5, None]}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_nan_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "a.json", {"x": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_content(tmp_path):
    path = tmp_path / "a.json"
    files.write_json(path, "old")

    def fail(file):
        file.write(b"half of the")
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        files.write_atomically(path, fail)
    assert files.read_json(path) == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as caught:
        files.write_text(tmp_path / "a.json", "x")
    assert caught.value.filename == str(tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_is_really_full_raises(tmp_path):
    with pytest.raises(OSError) as caught:
        files.write_atomically(
            tmp_path / "a", lambda file: os.write(os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC), b"x")
        )
    assert caught.value.errno == errno.ENOSPC


def test_a_link_is_replaced_when_written_and_its_target_is_untouched(tmp_path):
    target = tmp_path / "precious"
    target.write_text("mine")
    link = tmp_path / "a.json"
    link.symlink_to(target)
    files.write_json(link, 1)
    assert target.read_text() == "mine"
    assert not link.is_symlink()


def test_a_partial_file_that_is_a_link_is_not_followed(tmp_path, monkeypatch):
    target = tmp_path / "precious"
    target.write_text("mine")
    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(threading, "get_native_id", lambda: 2)
    (tmp_path / ".a.json.1.2.partial").symlink_to(target)
    files.write_json(tmp_path / "a.json", 1)
    assert target.read_text() == "mine"


@pytest.mark.parametrize("write", [lambda path: files.append_line(path, "x"), lambda path: _lock(path)])
def test_appending_and_locking_refuse_links(tmp_path, write):
    target = tmp_path / "precious"
    target.write_text("mine")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(OSError) as caught:
        write(tmp_path / "link")
    assert caught.value.errno == errno.ELOOP
    assert target.read_text() == "mine"


def _lock(path):
    with files.exclusive_lock(path):
        pass


def test_lines_are_appended(tmp_path):
    for line in ("a", "λ"):
        files.append_line(tmp_path / "log", line)
    assert (tmp_path / "log").read_text(encoding="utf-8") == "a\nλ\n"


def test_a_lock_is_held_by_one_at_a_time(tmp_path):
    order = []

    def second():
        with files.exclusive_lock(tmp_path / ".lock"):
            order.append("second")

    with files.exclusive_lock(tmp_path / ".lock"):
        thread = threading.Thread(target=second)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_pipe_or_a_folder_is_not_read_and_nothing_blocks(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "missing"):
        assert files.read_json(tmp_path / name) is None
        with pytest.raises(OSError):
            files.read_bytes(tmp_path / name)


def test_a_pipe_is_not_appended_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError):
        files.append_line(tmp_path / "pipe", "x")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    (tmp_path / "large").write_bytes(b"12345")
    with pytest.raises(OSError, match="larger than 4 bytes"):
        files.read_bytes(tmp_path / "large", limit=4)


@pytest.mark.parametrize("text", ["", "{", '{"a": 1', "[" * 100_000, "\xff"])
def test_a_damaged_document_is_none(tmp_path, text):
    (tmp_path / "a.json").write_bytes(text.encode("latin-1"))
    assert files.read_json(tmp_path / "a.json") is None


def test_bytes_of_a_name_that_are_not_text_are_escaped(tmp_path):
    files.write_json(tmp_path / "a.json", {"source": os.fsdecode(b"gr\xefd")})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["source"] == "gr\udcefd"


def test_partial_files_are_removed(tmp_path):
    (tmp_path / ".result.json.1.2.partial").touch()
    (tmp_path / "result.json").touch()
    files.remove_partial_files(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
