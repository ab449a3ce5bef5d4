"""Finding and building the C library."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from graphgym_lcat.kernels import dispatch, fused, library, torch_path
from graphgym_lcat.kernels.backend import Request

ROOT = Path(__file__).parents[2]


def test_without_the_library_the_torch_path_serves(monkeypatch, tmp_path):
    monkeypatch.setattr(library, "PATH", tmp_path / "_fused.so")
    reason = library.load.__wrapped__()
    assert "was not built" in reason
    monkeypatch.setattr(fused, "UNAVAILABLE", reason)
    request = Request("neighbor_mean", "cpu", (torch.float32,), (3, 3))
    assert dispatch.choose("auto", request) is torch_path
    assert dispatch.describe_backend() == f"torch path ({reason})"
    with pytest.raises(RuntimeError, match="was not built"):
        dispatch.choose("fused", request)


def test_a_damaged_library_is_reported(monkeypatch, tmp_path):
    broken = tmp_path / "_fused.so"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr(library, "PATH", broken)
    assert "cannot be loaded" in library.load.__wrapped__()


def test_a_library_of_other_sources_is_not_called(monkeypatch):
    monkeypatch.setattr(library, "INTERFACE", -1)
    assert "built from other sources" in library.load.__wrapped__()


def test_an_unknown_instruction_set_is_reported(monkeypatch):
    monkeypatch.setenv(library.ENVIRONMENT_VARIABLE, "mmx")
    assert "must be one of generic" in library.load.__wrapped__()


@pytest.fixture
def sources(tmp_path):
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    target = tmp_path / "graphgym_lcat/kernels/csrc"
    shutil.copytree(ROOT / "graphgym_lcat/kernels/csrc", target)
    return tmp_path


def build(folder, **environment):
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    # Without optimisation, which takes most of the time and does not matter here.
    variables = {**os.environ, "CFLAGS": "-O0", **environment}
    run = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return run, folder / "graphgym_lcat/kernels/_fused.so"


def test_without_a_compiler_the_build_succeeds_and_says_so(sources):
    run, built = build(sources, CC="no-such-compiler")
    assert run.returncode == 0
    assert not built.exists()
    assert "graphgym-lcat: no fused kernels" in run.stderr
    assert "the torch path will serve" in run.stderr


@pytest.mark.slow
def test_without_openmp_the_kernels_use_one_thread(sources, monkeypatch):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    wrapper = sources / "cc-without-openmp"
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *-fopenmp*) exit 1;; esac\nexec {compiler} "$@"\n')
    wrapper.chmod(0o755)
    run, built = build(sources, CC=str(wrapper), LDSHARED=f"{wrapper} -shared")
    assert run.returncode == 0, run.stderr
    assert "no OpenMP" in run.stderr
    monkeypatch.setattr(library, "PATH", built)
    assert library.load.__wrapped__().has_openmp is False


@pytest.fixture
def stale(monkeypatch):
    monkeypatch.setattr(library, "INTERFACE", -1)
    monkeypatch.setattr(library, "load", library.load.__wrapped__)


def test_a_stale_library_is_reported_with_the_command_that_rebuilds_it(stale):
    expected = r"slower torch path: _fused.so was built from other sources; .*pip install --no-deps -e \."
    assert re.search(expected, library.why_unused())


def test_a_stale_library_is_warned_of_once_on_import(stale):
    with pytest.warns(RuntimeWarning, match="slower torch path") as warned:
        runpy.run_path(fused.__file__)
    assert len(warned) == 1


@pytest.mark.parametrize("meant", ["never built", "torch path asked for", "all is well"])
def test_a_library_that_is_not_used_on_purpose_is_not_reported(meant, monkeypatch, tmp_path, request):
    if meant != "all is well":
        request.getfixturevalue("stale")
    if meant == "never built":
        monkeypatch.setattr(library, "PATH", tmp_path / "_fused.so")
    if meant == "torch path asked for":
        monkeypatch.setenv(dispatch.ENVIRONMENT_VARIABLE, "torch")
    assert library.why_unused() is None
