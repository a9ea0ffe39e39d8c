"""The command as it is rehearsed, on the CPU with small sizes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import plan
from benchmarks.gpu.report import ROOT
from benchmarks.gpu.stages import Stage
from situate.zoo.networks import NETWORKS
from tests.processes import left_of

REHEARSAL = ["--device", "cpu", "--tiny"]


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    """The command ends its stages where it is told to end; the tests' own process need not."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_stage_leaves_its_figures_in_the_report(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "gpu.json"
    command.main([*REHEARSAL, "--stages", "links", "--out", str(out)])
    report = json.loads(out.read_bytes())
    assert report["finished"]
    assert report["options"]["device"] == "cpu"
    links = report["stages"]["links"]
    assert links["verdict"] == "done"
    assert {row["direction"] for row in links["figures"]["links"]} == {
        "to device", "to host", "both",
    }  # fmt: skip


def test_a_command_that_is_told_to_end_leaves_a_valid_report_and_no_process(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    arguments = [*REHEARSAL, "--stages", "machine", "links", "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.gpu", *arguments], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + 30
    while not (out.exists() and children(process.pid)) and time.monotonic() < end:
        time.sleep(0.02)
    (stage,) = children(process.pid)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    report = json.loads(out.read_bytes())
    assert not report["finished"]
    assert report["stages"]["links"]["verdict"] in ("not reached", "left out")
    assert left_of([stage]) == []


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    text = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for path in text.parent.parent.glob("*/children") for child in
            path.read_text().split()]  # fmt: skip


def test_stages_are_chosen_by_the_beginnings_of_their_names() -> None:
    phases = plan.phases(["gpt2", "bert"], ["chain"], 4)
    names = [s.name for phase in plan.selection(phases, ["networks.gpt2", "pair"]) for s in
             phase.stages]  # fmt: skip
    assert names == ["pair.chain", "networks.gpt2.float32", "networks.gpt2.bfloat16"]
    assert plan.selection(phases, None) == phases


def test_eight_networks_of_the_zoo_are_measured_in_two_dtypes() -> None:
    stages = [s for phase in plan.phases(plan.NETWORKS, plan.PAIRS, 4) for s in phase.stages]
    networks = {s.arguments[0] for s in stages if s.module == "networks"}
    assert len(networks) == 8
    assert networks <= set(NETWORKS)
    assert len([s for s in stages if s.module == "networks"]) == 16


def test_every_stage_has_a_module_and_a_name_of_its_own() -> None:
    stages: list[Stage] = [s for phase in plan.phases(plan.NETWORKS, plan.PAIRS, 4) for s in
                           phase.stages]  # fmt: skip
    assert len({s.name for s in stages}) == len(stages)
    folder = ROOT / "benchmarks" / "gpu"
    assert [s.module for s in stages if not (folder / f"{s.module}.py").exists()] == []


@pytest.mark.parametrize(
    "arguments",
    [["--budget", "0"], ["--budget", "471"], ["--jobs", "0"], ["--networks", "alexnet"]],
)
def test_bad_options_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert arguments[0] in capsys.readouterr().err


def test_the_command_imports_nothing_that_a_bare_machine_lacks() -> None:
    code = "import benchmarks.gpu.__main__, sys; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-S", "-c", code], env=environment, cwd=ROOT,
                         capture_output=True, text=True, check=True)  # fmt: skip
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert loaded & {"situate", "numpy", "torch", "msgspec", "rich", "typer"} == set()
