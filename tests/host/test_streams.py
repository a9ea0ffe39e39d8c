"""A closed or broken standard stream is as good as /dev/null."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain, combinations
from pathlib import Path

import pytest

from situate.data import graph_json
from situate.data.graph import Graph, Op
from situate.results.plan import Plan

CLOSED = ("<&-", ">&-", "2>&-")
COMBINATIONS = [
    " ".join(streams) for streams in chain.from_iterable(combinations(CLOSED, n) for n in (1, 2, 3))
]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a shell that has `situate` for the command."""
    script = f'situate() {{ "{sys.executable}" -m situate "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=folder, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds a model of two ops."""
    result = tmp_path_factory.mktemp("streams")
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "ab")
    graph_json.write(Graph("two", ops), result / "two.json")
    return result


PLAN = "situate plan two.json --cluster identical:2 --evaluations 1 --out plan.json"


@pytest.mark.parametrize("closed", COMBINATIONS)
def test_a_plan_is_written_whichever_streams_are_closed(closed: str, folder: Path) -> None:
    (folder / "plan.json").unlink(missing_ok=True)
    process = run(f"{PLAN} {closed}", folder)
    assert process.returncode == 0
    assert process.stderr == ("" if "2>&-" in closed else "wrote plan.json\n")
    assert bool(process.stdout) == (" >&-" not in f" {closed}")
    assert Plan.read(folder / "plan.json").graph == "two"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(("words", "status"), [("--version", 0), ("info nothing", 2)])
def test_the_status_is_as_with_open_streams(
    words: str, status: int, closed: str, folder: Path
) -> None:
    process = run(f"situate {words} {closed}", folder)
    assert process.returncode == status
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("target", ["/dev/full", ">(true)"])
def test_notes_that_cannot_be_printed_do_not_take_the_plan(target: str, folder: Path) -> None:
    (folder / "plan.json").unlink(missing_ok=True)
    process = run(f"exec 3> {target}; sleep 0.1; {PLAN} 2>&3", folder)
    assert (process.returncode, process.stderr) == (0, "")
    assert Plan.read(folder / "plan.json").graph == "two"


def test_whoever_closes_stdout_early_is_not_told(folder: Path) -> None:
    process = run("situate methods | true; echo ${PIPESTATUS[0]} >&2", folder)
    assert process.stderr in ("0\n", "1\n")


def test_a_descriptor_that_was_closed_is_taken_by_no_file(folder: Path) -> None:
    code = "from situate.host.streams import open_closed as o; o(); import os; f = open('x', 'w')"
    code += "; print(f.fileno() > 2, os.get_inheritable(1), file=open('said', 'w'))"
    run(f'{sys.executable} -c "{code}" <&- >&- 2>&-', folder)
    assert (folder / "said").read_text() == "True True\n"
