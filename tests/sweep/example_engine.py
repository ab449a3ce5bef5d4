"""An engine of another package: one process per run, all started at once, none awaited."""

from __future__ import annotations

import os
import signal
import sys

from lcat_core.files import read_json, write_json
from lcat_core.process import Process
from lcat_core.run_folder import RunState, State
from lcat_run.engines.engine import Ending, Engine, QueueLook
from lcat_run.engines.task import Task


class ExampleEngine(Engine):
    name = "example"
    summary = "one process per run"

    def add_options(self, options):
        options.add_argument("--nice", type=int, default=0, help="niceness of the processes")

    def configure(self, options):
        self.niceness = options.nice

    def look(self, folder):
        return QueueLook({run_id: RunState(State.QUEUED, "starting") for run_id, _ in self._alive(folder)})

    def parallel_runs(self, number):
        return number

    def preview(self, launch):
        return f"nice -n {self.niceness} python -m lcat_run.engines.task …, {len(launch.runs)} times"

    def start(self, launch):
        own_folder = launch.folder.engine_folder(self.name)
        own_folder.mkdir(exist_ok=True)
        for run in launch.runs:
            task = own_folder / f"{run.run_id}.task"
            Task.create(launch, [run]).write(task)
            command = ["nice", "-n", str(self.niceness), sys.executable, "-m", "lcat_run.engines.task", str(task)]
            pid = os.posix_spawnp(command[0], command, os.environ, setpgroup=0)
            write_json(own_folder / f"{run.run_id}.json", Process.with_pid(pid).record())
        return Ending(f"started {len(launch.runs)} processes")

    def cancel(self, folder):
        alive = list(self._alive(folder))
        for _, process in alive:
            os.kill(process.pid, signal.SIGTERM)
        return [f"asked process {process.pid} to stop" for _, process in alive]

    def _alive(self, folder):
        for path in sorted(folder.engine_folder(self.name).glob("*.json")):
            process = Process.from_record(read_json(path))
            if process is not None and process.is_here and process.is_alive():
                yield path.stem, process
