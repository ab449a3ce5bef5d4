"""The Triton kernels compile for GPUs without spilled registers, atomic operations and double precision; no GPU is needed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Each shape is widest for its target in one way: heads, channels, heads and channels that fill no block.
SELECTION = {"sm_80": ("float32", "8x8"), "sm_90": ("bfloat16", "4x256"), "gfx942": ("float16", "3x40")}


def compile_kernels(folder, *options):
    command = [sys.executable, str(Path(__file__).with_name("compile_kernels.py")), *options]
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(folder)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


def assert_clean(rows, tolerated_bytes=0):
    assert len({row["kernel"] for row in rows}) == 6
    assert [row for row in rows if row["spilled"] > tolerated_bytes or row["atomics"] or row["doubles"]] == []


@pytest.mark.slow
def test_kernels_compile_cleanly_for_every_target(tmp_path):
    selection = [f"{target},{dtype},{shape}" for target, (dtype, shape) in SELECTION.items()]
    rows = compile_kernels(tmp_path, *selection)
    assert {row["target"] for row in rows} == set(SELECTION)
    assert_clean(rows)


@pytest.mark.campaign
def test_kernels_compile_cleanly_for_all_shapes_types_and_targets(tmp_path):
    # NVIDIA's assembler moves one or two numbers to the stack in a few of them, with most registers still free.
    assert_clean(compile_kernels(tmp_path), tolerated_bytes=16)
