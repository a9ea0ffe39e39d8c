"""The memory of a plan by llama.cpp itself."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from situate.errors import SituateError
from situate.language.planning import fit_params
from situate.language.planning.fit_params import (
    ask,
    compare_with_engine,
    find_fit_params,
    listed_devices,
    read_rows,
)
from tests.language.planning.homes import home_with, planner_of, small_model

MIB = 2**20
ANSWER = "RPC0 35 13 41 \nRPC1 199 14 543 \nHost 170 0 26 \n"
DEVICES = "Available devices:\n  RPC0: 127.0.0.1:51001 (24105 MiB, 24105 MiB free)\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A stand-in that answers from two files, and writes its arguments into a third."""
    (tmp_path / "answer").write_text(ANSWER)
    (tmp_path / "devices").write_text(DEVICES)
    path = tmp_path / "llama-fit-params"
    path.write_text(
        f"#!/bin/sh\ncd {tmp_path}\n"
        'if [ "$1" = --list-devices ]; then cat devices; else echo "$*" > asked; cat answer; fi\n'
    )
    path.chmod(0o755)
    return path


# Answers of the program.
def test_rows_are_whole_mib_by_device() -> None:
    rows = read_rows(["some text", *ANSWER.splitlines(), "Host 1 2"])
    assert rows == [(35 * MIB, 13 * MIB, 41 * MIB), (199 * MIB, 14 * MIB, 543 * MIB),
                    (170 * MIB, 0, 26 * MIB)]  # fmt: skip


def test_devices_of_this_machine_are_listed(program: Path) -> None:
    assert listed_devices(program) == ["RPC0"]


def test_a_plan_is_asked_with_its_own_flags(program: Path) -> None:
    planner = planner_of(small_model(), home_with((4, 400, 25)))
    (program.parent / "answer").write_text("CUDA0 1 2 3 \nHost 4 5 6 \n")
    rows = compare_with_engine(program, planner, planner.plan(), "model.gguf")
    assert [row.device for row in rows] == ["gpu0", "cpu"]
    assert [row.printed for row in rows] == [6 * MIB, 15 * MIB]
    assert rows[0].difference == rows[0].predicted - 6 * MIB
    asked = (program.parent / "asked").read_text()
    assert asked.startswith("-m model.gguf -ngl")
    assert asked.endswith("--fit-print on\n")


# Failures are one line.
def test_other_devices_are_refused(program: Path) -> None:
    planner = planner_of(small_model(), home_with((4, 400, 25)))
    with pytest.raises(SituateError, match="sees 2 GPUs here, and the plan uses 1"):
        compare_with_engine(program, planner, planner.plan(), "model.gguf")


def test_one_cache_of_all_slots_cannot_be_asked_for(program: Path) -> None:
    planner = planner_of(small_model(), home_with((4, 400, 25)))
    plan = planner.plan()
    unified = replace(plan, options=replace(plan.options, unified=True))
    with pytest.raises(SituateError, match="no flag"):
        compare_with_engine(program, planner, unified, "model.gguf")


def test_a_failure_is_told_by_its_own_line(program: Path) -> None:
    program.write_text(
        "#!/bin/sh\necho 'error: invalid\033[1m device' >&2\necho usage >&2\nexit 1\n"
    )
    with pytest.raises(SituateError, match=r"failed: error: invalid.* device") as error:
        ask(program, "model.gguf", [])
    assert "\033" not in str(error.value)


def test_a_slow_program_is_left(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program.write_text("#!/bin/sh\nexec sleep 30\n")
    monkeypatch.setattr(fit_params, "SECONDS", 0.2)
    with pytest.raises(SituateError, match="no answer"):
        ask(program, "model.gguf", [])


def test_a_program_that_cannot_run_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="No such file"):
        ask(tmp_path / "nothing", "model.gguf", [])


# The program is in a folder of its own, or on the path.
def test_the_program_is_found(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.delenv(fit_params.FOLDER, raising=False)
    assert find_fit_params() is None
    monkeypatch.setenv(fit_params.FOLDER, str(program.parent))
    assert find_fit_params() == program
    monkeypatch.delenv(fit_params.FOLDER)
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_fit_params() == program
