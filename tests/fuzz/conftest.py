"""``--fuzz-seconds N``: how long each campaign lasts; the ordinary tests make a fixed number of cases."""

from __future__ import annotations

import pytest
from fuzzing import Fuzzer


def pytest_addoption(parser):
    parser.addoption("--fuzz-seconds", type=float, default=60.0, metavar="N", help="duration of each fuzzing campaign")
    parser.addoption("--fuzz-from", type=int, default=0, metavar="N", help="number of the first case")


@pytest.fixture
def fuzzer(request, tmp_path) -> Fuzzer:
    """Makes cases for one subject: as many as the test says, or in a campaign as many as fit into its time."""
    config = request.config
    seconds = config.getoption("--fuzz-seconds", 60.0) if request.node.get_closest_marker("campaign") else None
    return Fuzzer(tmp_path, config.getoption("--fuzz-from", 0), seconds)
