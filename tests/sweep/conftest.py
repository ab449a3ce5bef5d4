from __future__ import annotations

import shlex
import sys

import pytest
from sweep_sandbox import FAKE_WORKER, Sandbox


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=1000, metavar="N", help="SIGKILLs in test_kill_campaign.py")


@pytest.fixture
def sandbox(tmp_path, monkeypatch) -> Sandbox:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LCAT_WORKER", shlex.join([sys.executable, "-S", str(FAKE_WORKER)]))
    return Sandbox(tmp_path)
