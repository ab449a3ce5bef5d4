"""No undefined behaviour and no access out of bounds, by the compiler's sanitizers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphgym_lcat.kernels import library

ROOT = Path(__file__).parents[2]
FLAGS = "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all"


def runtime(name):
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.fixture(scope="module")
def sanitized_library(tmp_path_factory):
    if shutil.which("gcc") is None or not Path(runtime("libasan.so")).exists():
        pytest.skip("gcc with its sanitizers is not installed")
    folder = tmp_path_factory.mktemp("sanitized")
    environment = {**os.environ, "CC": "gcc", "CFLAGS": FLAGS, "LDFLAGS": FLAGS}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", folder, "--build-temp", folder / "objects"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder / "graphgym_lcat/kernels/_fused.so"


def run_sanitized(path, instruction_set, *arguments):
    best = library.load().instruction_set
    if library.INSTRUCTION_SETS.index(instruction_set) > library.INSTRUCTION_SETS.index(best):
        pytest.skip(f"this processor has no {instruction_set}")
    environment = {
        **os.environ,
        "LCAT_LIBRARY": str(path),
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself frees not everything at its end
        library.ENVIRONMENT_VARIABLE: instruction_set,
    }
    command = [sys.executable, Path(__file__).with_name("sanitized_run.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.campaign
@pytest.mark.parametrize("instruction_set", library.INSTRUCTION_SETS)
def test_the_sanitizers_find_nothing(sanitized_library, instruction_set):
    run = run_sanitized(sanitized_library, instruction_set)
    assert run.returncode == 0, run.stderr[-3000:]
    assert f"calls with {instruction_set}" in run.stdout


@pytest.mark.campaign
def test_the_sanitizers_would_find_an_access_out_of_bounds(sanitized_library):
    run = run_sanitized(sanitized_library, "generic", "--mistake")
    assert run.returncode != 0
    assert "heap-buffer-overflow" in run.stderr
