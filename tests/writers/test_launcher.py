"""Scripts run a command with a plan's settings."""

from __future__ import annotations

import subprocess
from pathlib import Path

from situate.writers.launcher import script
from tests.report.handmade import HOSTILE
from tests.writers.layered import network

PRINT = ["sh", "-c", 'printf "%s\\n" "$A" "$@"', "sh"]


def run(path: Path, command: list[str]) -> list[str]:
    ended = subprocess.run(["sh", path, *command], capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


def test_the_command_gets_environment_and_arguments_as_they_are(tmp_path: Path):
    path = tmp_path / "run.sh"
    path.write_bytes(script(network(), ["gpu0"], {"A": "1,2"}, ["--layout", "Et*3|t*3L", "a b"]))
    assert run(path, [*PRINT, "its own"]) == ["1,2", "its own", "--layout", "Et*3|t*3L", "a b"]


def test_hostile_names_stay_in_the_comment(tmp_path: Path):
    path = tmp_path / "run.sh"
    path.write_bytes(script(network(), HOSTILE, {}, ["x"]))
    assert path.read_text().count("\n") == 3
    assert run(path, ["echo"]) == ["x"]


def test_a_launcher_stands_before_the_command(tmp_path: Path):
    path = tmp_path / "run.sh"
    path.write_bytes(script(network(), ["gpu0"], {}, launcher=["echo", "a b"], note="two\nlines"))
    assert run(path, ["train.py"]) == ["a b train.py"]
    assert "# two\\nlines\n" in path.read_text()
