"""Kill workers and launchers of a sweep at random moments."""

import json
import signal
import subprocess
import time

from lcat_core.process import Process


def worker_of(claim) -> Process | None:
    try:
        content = json.loads(claim.read_text())
    except ValueError:
        return None
    return None if "left" in content else Process.from_record(content.get("worker"))


def kill_something(sandbox, rng, launcher) -> str:
    """Send SIGKILL, in the middle of a run, to its worker or (one time in five) to the launcher; return which."""
    workers = [worker_of(path) for path in sandbox.folder.runs.glob("*/claim.json")]
    alive = [worker for worker in workers if worker is not None and worker.is_alive()]
    if not alive:
        return ""
    if rng.random() < 0.2:
        launcher.kill()
        return "launcher"
    subprocess.run(["kill", "-KILL", str(rng.choice(alive).pid)], check=False)
    return "worker"


def sweep_under_fire(sandbox, kills, arguments, rng):
    """Rerun the sweep until it is complete, killing ``kills`` times; return how often what was killed."""
    done = {"worker": 0, "launcher": 0}
    deadline = time.monotonic() + 1200
    while True:
        launcher = sandbox.launch(*arguments)
        while launcher.poll() is None and sum(done.values()) < kills:
            time.sleep(rng.uniform(0.05, 0.4))
            victim = kill_something(sandbox, rng, launcher)
            if victim:
                done[victim] += 1
        said, _ = launcher.communicate(timeout=900)
        if launcher.returncode == 0:
            return done
        assert launcher.returncode in (1, -signal.SIGKILL), said
        assert time.monotonic() < deadline
