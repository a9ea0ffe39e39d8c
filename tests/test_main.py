"""The command, before and after its command line."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from situate import cli
from situate.__main__ import run

LOADING = """
import sys
from importlib.abc import MetaPathFinder

class Interrupted(MetaPathFinder):
    def find_spec(self, name, *_):
        if name == "situate.cli.commands.plan":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from situate.__main__ import run
sys.exit(run())
"""


def test_interrupted_while_it_loads_it_says_so_in_a_word() -> None:
    process = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "interrupted\n")


def test_the_status_is_the_command_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "main", lambda: 3)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = signal.getsignal(signal.SIGINT)
    try:
        assert run() == 3
    finally:
        signal.signal(signal.SIGINT, before)


COMMAND = """
import atexit, os, signal, sys
import situate.cli
from situate.__main__ import run
from situate.runtime.processes.signals import HeldSignals

def waiting(work):
    with HeldSignals():
        work()

def interrupted(*_):
    os.kill(os.getpid(), signal.SIGINT)

def main():
    atexit.register(interrupted)
    class Left:
        def __del__(self):
            interrupted()
    {within}

situate.cli.main = main
status = run()
interrupted()
sys.exit(status)
"""


@pytest.mark.parametrize(
    ("within", "status", "said"),
    [
        ("return 3", 3, ""),
        ("interrupted()", 130, "interrupted\n"),
        ("try: interrupted()\n    finally: interrupted()", 130, "interrupted\n"),
        ("Left(); import time; time.sleep(60); return 0", 130, "interrupted\n"),
        ("main.left = Left(); return 3", 3, ""),
        ("waiting(interrupted)", 130, "interrupted\n"),
        ("signal.signal(signal.SIGINT, signal.SIG_IGN); interrupted(); return 3", 3, ""),
    ],
)
def test_interrupted_whenever_and_however_often_it_says_so_in_a_word(
    within: str, status: int, said: str
) -> None:
    code = COMMAND.format(within=within)
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (status, "", said)


def test_in_the_background_an_interrupt_that_is_ignored_stays_so() -> None:
    code = COMMAND.format(within="interrupted(); return 0")
    command = f"trap '' INT; {sys.executable} -c '{code}'"
    process = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")
