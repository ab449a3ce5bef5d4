from __future__ import annotations

import shlex
import sys

import pytest
from sweep_sandbox import FAKE_WORKER, Sandbox


@pytest.fixture
def sandbox(tmp_path, monkeypatch) -> Sandbox:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LCAT_WORKER", shlex.join([sys.executable, "-S", str(FAKE_WORKER)]))
    return Sandbox(tmp_path)
