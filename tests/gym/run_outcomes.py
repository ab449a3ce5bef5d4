"""What the tests of runs share: a small run, what it leaves behind, and ways to interrupt it."""

import json

from graphgym_lcat.gym.runner import Run

TIMES = ("eta", "time_iter")


def make_run(folder, settings, **changes) -> Run:
    return Run(folder / "some-run", "lcat", {**settings, **changes}, params={"gnn.dim_inner": 8}, threads=1)


def stats(run, split):
    """The lines of a ``stats.json``, without times."""
    lines = (run.run_dir / split / "stats.json").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]


def outcome(run):
    """Everything that a run has written and that must not depend on interruptions."""
    result = json.loads((run.run_dir / "result.json").read_text())
    result.pop("timing")
    logs = {split: stats(run, split) for split in ("train", "val", "test")}
    return result, logs, (run.run_dir / "lambdas.csv").read_text()


class Stop(BaseException):
    """Stands for a process that dies: nothing in the runner may catch it."""


def interrupt_at(epoch):
    def stop(loop):
        if loop.epoch == epoch:
            raise Stop

    return stop


def interrupt_at_step(epoch, step):
    def stop(loop, taken):
        if (loop.epoch, taken.done) == (epoch, step):
            raise Stop

    return stop
