"""Closing the terminal pauses a sweep or a run with checkpoints; what is detached from the terminal goes on."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import time

import pytest

pytestmark = pytest.mark.slow

LONG = ("optim.max_epoch", "400")  # four seconds per run
DETACHED = ("optim.max_epoch", "100")


class Terminal:
    """A pseudo-terminal in which a command runs, as session leader or in an interactive shell, until it is closed."""

    def __init__(self, command, folder):
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            for number in (signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(command[0], command)
        termios.tcsetwinsize(self._master, (24, 80))  # so that a progress bar is shown
        os.set_blocking(self._master, False)

    def read(self):
        """Read what is shown, so that nothing waits for the terminal."""
        try:
            os.read(self._master, 65536)
        except (BlockingIOError, OSError):
            return

    def close(self):
        os.close(self._master)

    def wait(self, seconds=30.0):
        """Return the exit status of the command."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        raise TimeoutError("the command did not end")


def sweep_command(*arguments):
    return [sys.executable, "-m", "lcat_run.cli", "sweep", "grid.yaml", "-j", "2", *arguments]


def wait_for(condition, terminal=None, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        if terminal is not None:
            terminal.read()
        time.sleep(0.05)


def started(sandbox):
    return len(list(sandbox.folder.runs.glob("*/checkpoint.pt")))


def left(sandbox):
    """How the runs that were started were left, from their claims."""
    return [path.read_text() for path in sandbox.folder.runs.glob("*/claim.json")]


def launchers_gone(sandbox):
    return not list((sandbox.folder.path / "launchers").glob("*.json"))


@pytest.mark.parametrize("shell", [False, True], ids=["session leader", "in a shell"])
def test_closing_the_terminal_pauses_a_sweep_with_checkpoints(sandbox, shell):
    command = sweep_command(*LONG)
    terminal = Terminal(["bash", "--norc", "-ic", f"{' '.join(command)}; true"] if shell else command, sandbox.path)
    wait_for(lambda: started(sandbox) >= 2, terminal)
    terminal.close()
    wait_for(lambda: launchers_gone(sandbox))
    terminal.wait()
    assert all('"left": "paused"' in claim for claim in left(sandbox)), left(sandbox)
    assert sandbox.launch_and_wait(*DETACHED, "--only", "seed=0") == 0


def test_a_second_hang_up_does_not_kill_what_is_writing_its_checkpoint(sandbox):
    terminal = Terminal(sweep_command(*LONG), sandbox.path)
    wait_for(lambda: started(sandbox) >= 2, terminal)
    for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
        os.kill(terminal.pid, number)
    terminal.close()
    assert terminal.wait() == 130
    assert all('"left": "paused"' in claim for claim in left(sandbox)), left(sandbox)


@pytest.mark.parametrize("prefix", ["nohup", "setsid"])
def test_a_detached_sweep_survives_its_terminal(sandbox, prefix):
    # setsid keeps its output on the terminal, which every write finds closed.
    script = f"{prefix} {' '.join(sweep_command(*DETACHED))} & sleep 600"
    terminal = Terminal(["bash", "--norc", "-c", script], sandbox.path)
    wait_for(lambda: started(sandbox) >= 2, terminal)
    terminal.close()
    wait_for(lambda: len(sandbox.results()) == 8 and launchers_gone(sandbox))
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.wait()
    assert set(sandbox.completions().values()) == {1}


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_a_sweep_in_tmux_survives_detaching_and_pauses_when_the_session_is_killed(sandbox):
    tmux = ["tmux", "-L", f"lcat-{os.getpid()}", "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", *sweep_command(*LONG)], check=True)
    try:
        wait_for(lambda: started(sandbox) >= 2)
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
    wait_for(lambda: launchers_gone(sandbox))
    assert all('"left": "paused"' in claim for claim in left(sandbox)), left(sandbox)


def test_closing_the_terminal_pauses_a_single_run_with_a_checkpoint(tmp_path):
    settings = ["dataset.name", "BlockModel", "optim.max_epoch", "100000", "out_dir", str(tmp_path)]
    command = [sys.executable, "-m", "lcat_run.cli", "run", "--cfg", "real.yaml", "--threads", "1", *settings]
    terminal = Terminal(command, tmp_path)
    wait_for(lambda: list(tmp_path.rglob("log.txt")) and list(tmp_path.rglob("train/stats.json")), terminal, 120)
    time.sleep(0.5)
    terminal.close()
    assert terminal.wait(60) == 75
    assert list(tmp_path.rglob("checkpoint.pt"))
