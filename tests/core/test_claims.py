import json
import os
import signal
import subprocess
import sys

import pytest

from lcat_core.claims import Claim, inspect_claim
from lcat_core.outcomes import Outcome
from lcat_core.process import Process

CLAIM_AND_WAIT = """
import sys, time
from pathlib import Path
from lcat_core.claims import Claim
claim = Claim.take(Path(sys.argv[1]))
print("taken" if claim else "refused", flush=True)
time.sleep(60)
"""


def claim_in_another_process(run_dir):
    process = subprocess.Popen([sys.executable, "-c", CLAIM_AND_WAIT, str(run_dir)], stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_claimed_run_is_refused_to_others(tmp_path):
    claim = Claim.take(tmp_path)
    other, answer = claim_in_another_process(tmp_path)
    end(other)
    claim.release(Outcome.PAUSED)
    assert answer == "refused"


def test_a_released_run_can_be_claimed_again(tmp_path):
    Claim.take(tmp_path).release(Outcome.PAUSED)
    claim = Claim.take(tmp_path)
    assert claim.previous["left"] == "paused"
    claim.release(Outcome.DONE)


def test_the_claim_of_a_killed_owner_is_free(tmp_path):
    owner, answer = claim_in_another_process(tmp_path)
    assert answer == "taken"
    assert Claim.take(tmp_path) is None
    end(owner)
    claim = Claim.take(tmp_path)
    assert claim.previous["owner"]["pid"] == owner.pid
    claim.release(Outcome.DONE)


def test_a_worker_that_outlives_its_launcher_still_has_the_run(tmp_path):
    worker = subprocess.Popen(["sleep", "60"])
    left_behind = {"owner": Process("here", 1, 1).record(), "worker": Process.with_pid(worker.pid).record()}
    (tmp_path / "claim.json").write_text(json.dumps(left_behind))
    assert Claim.take(tmp_path) is None
    worker.kill()
    worker.wait()
    Claim.take(tmp_path).release(Outcome.DONE)


@pytest.mark.parametrize("content", ['{"owner": {"pi', "[1]", '{"owner": "me"}', '{"left": "failed", "at": "noon"}'])
def test_a_damaged_claim_file_is_ignored(tmp_path, content):
    (tmp_path / "claim.json").write_text(content)
    assert inspect_claim(tmp_path) == (False, {})
    Claim.take(tmp_path).release(Outcome.DONE)


def test_looking_at_a_claim_says_who_has_it(tmp_path):
    assert inspect_claim(tmp_path) == (False, {})
    claim = Claim.take(tmp_path)
    claimed, content = inspect_claim(tmp_path)
    assert claimed
    assert content["owner"]["pid"] == os.getpid()
    claim.release(Outcome.KILLED, "by SIGKILL")
    assert inspect_claim(tmp_path)[0] is False
    assert inspect_claim(tmp_path)[1]["detail"] == "by SIGKILL"


def test_a_process_number_that_was_reused_is_not_mistaken_for_its_former_owner():
    this = Process.current()
    assert this.is_alive()
    assert not Process(this.host, this.pid, this.started - 1).is_alive()


def test_a_child_tied_to_its_parent_dies_with_it(tmp_path):
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, subprocess, sys, time;"
            "p = subprocess.Popen([sys.executable, '-m', 'lcat_run.sweep.tied_process', str(os.getpid()), 'sleep', '60']);"
            "time.sleep(0.5); print(p.pid, flush=True); time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    child = Process.with_pid(int(parent.stdout.readline()))
    assert child.is_alive()
    os.kill(parent.pid, signal.SIGKILL)
    end(parent)
    for _ in range(100):
        if not child.is_alive():
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert not child.is_alive()
