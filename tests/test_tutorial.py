"""The tutorial, followed: its files are written and its commands run, in order, in one folder."""

from __future__ import annotations

import doctest
import io
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from situate.cli import main

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"^```(console measured|console|python|toml)\n(.*?)^```$", PAGE, re.M | re.S)
NOT_FITTING = 3


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with the output that the page quotes."""
    joined = block.replace("\\\n", " ")
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", joined, re.M)


def output(command: str) -> str:
    """The output of a command, to stdout and stderr alike."""
    program, *arguments = command.split()
    if program != "situate":
        return subprocess.check_output(command, shell=True, text=True)
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(written), redirect_stderr(written):
        status = main(arguments)
    written.seek(0)
    text = written.read()
    assert status == (NOT_FITTING if "does not fit in memory:" in text else 0), text
    return text


def without_figures(text: str) -> str:
    """The text with a sign for each number and its unit, and without warnings: measurements differ,
    and a busy machine is warned of."""
    lines = (line for line in text.splitlines() if not line.startswith("warning: "))
    return re.sub(r"\b\d[\d.,]*( ?(s|ms|µs|%|[KMG]iB|B)(?!\w))?", "#", "\n".join(lines))


def test_every_command_prints_what_the_tutorial_quotes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    check, options = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for kind, block in BLOCKS:
        if not kind.startswith("console"):
            Path(block.split()[1]).write_text(block)  # its first line is a comment with its name
            continue
        for command, quoted in commands(block):
            shown = output(command)
            if kind == "console measured":
                quoted, shown = without_figures(quoted), without_figures(shown)
            assert check.check_output(quoted, shown, options), f"$ {command}\n{shown}"
    del sys.modules["language_model"]


@pytest.mark.parametrize("name", ["language_model.py", "two.toml", "cpu.toml"])
def test_every_file_of_the_tutorial_is_named_in_its_first_line(name):
    assert any(block.startswith(f"# {name}\n") for _, block in BLOCKS)
