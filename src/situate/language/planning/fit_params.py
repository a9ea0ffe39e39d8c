"""The memory of a plan as llama.cpp's own `llama-fit-params` prints it, where it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from situate.errors import SituateError
from situate.language.compute_buffers import Build
from situate.language.memory import device_memory, is_pipelined
from situate.language.planning.command_lines import flags
from situate.language.planning.planner import HomePlan, Planner

FOLDER = "SITUATE_LLAMA_CPP"
"""Environment variable: a folder with llama.cpp's programs."""

PROGRAM = "llama-fit-params"
SECONDS = 20.0
"""Longest time to wait for an answer."""

ROW = re.compile(r"(\S+) (\d+) (\d+) (\d+) ?$")
"""A device with MiB of weights, cache and compute buffer."""

MIB = 2**20


@dataclass(frozen=True)
class Comparison:
    """The memory of one device.

    Attributes:
        device: its name in the cluster.
        predicted: bytes of weights, cache and compute buffers by situate.
        printed: the same by llama.cpp, in whole MiB.
    """

    device: str
    predicted: int
    printed: int

    @property
    def difference(self) -> int:
        """Bytes by which the prediction is higher."""
        return self.predicted - self.printed


def find_fit_params() -> Path | None:
    """The program in the folder that `SITUATE_LLAMA_CPP` names, or on the path."""
    folder = os.environ.get(FOLDER)
    found = shutil.which(PROGRAM, path=folder) if folder else shutil.which(PROGRAM)
    return Path(found) if found else None


def compare_with_engine(
    program: Path, planner: Planner, plan: HomePlan, path: str
) -> list[Comparison]:
    """The memory of each device in use and of the host, by both.

    llama-fit-params reserves logits of every token of a ubatch, as llama-server no longer does, so
    that the prediction is made for that.

    Raises:
        SituateError: the program fails, takes too long, or sees other devices.
    """
    model, layout, gpus = planner.model, plan.layout, planner.home.accelerators
    if plan.options.unified:
        raise SituateError("llama-fit-params has no flag for one cache of all slots")
    rows = ask(program, path, flags(layout, plan.options, model, len(gpus)))
    build = Build(pipeline=is_pipelined(layout))
    memory = device_memory(model, layout, plan.options, len(gpus), build=build)
    places = (*layout.order, len(gpus))
    if len(rows) != len(places):
        raise SituateError(
            f"llama-fit-params sees {len(rows) - 1} GPUs here, and the plan uses {len(places) - 1}"
        )
    names = [processor.name for processor in planner.home.processors]
    return [
        Comparison(names[i], memory[i].weights + memory[i].cache + memory[i].compute, sum(row))
        for i, row in zip(places, rows, strict=True)
    ]


def ask(program: Path, path: str, words: Sequence[str]) -> list[tuple[int, int, int]]:
    """Bytes of weights, cache and compute buffer of each GPU, and of the host last.

    Args:
        program: llama-fit-params.
        path: of the model's file.
        words: flags, as for llama-server.

    Raises:
        SituateError: the program fails or takes too long.
    """
    command = [str(program), "-m", path, *words, "--fit-print", "on"]
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise SituateError(f"{PROGRAM} gave no answer in {SECONDS:.0f} s") from None
    except OSError as error:
        raise SituateError(f"{program}: {error.strerror}") from None
    rows = read_rows(answer.stdout.splitlines())
    if answer.returncode or not rows:
        lines = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
        raise SituateError(f"{PROGRAM} failed: {lines[-1][:200] if lines else 'no output'}")
    return rows


def read_rows(lines: Iterable[str]) -> list[tuple[int, int, int]]:
    """The rows of an answer in bytes, those of GPUs first and the host's last."""
    matches = [match for line in lines if (match := ROW.match(line))]
    return [tuple(int(match[i]) * MIB for i in (2, 3, 4)) for match in matches]  # type: ignore[misc]
