"""The command, before and after its command line."""

from __future__ import annotations

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
        if name == "situate.cli.plan":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from situate.__main__ import run
sys.exit(run())
"""


def test_interrupted_while_it_loads_it_says_so_in_a_word() -> None:
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_the_status_is_the_command_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "main", lambda: 3)
    assert run() == 3
