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
from situate.files.contents import one_line
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

DEVICE = re.compile(r" +(\S+): .*\(\d+ MiB, \d+ MiB free\)")
"""A device in llama.cpp's list."""

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
    program = shutil.which(PROGRAM, path=folder) if folder else shutil.which(PROGRAM)
    return Path(program) if program else None


def compare_with_engine(
    program: Path, planner: Planner, plan: HomePlan, path: str
) -> list[Comparison]:
    """The memory of each device in use and of the host, by both.

    llama-fit-params reserves logits of every token of a ubatch, as llama-server no longer does, and
    forgets the devices that llama.cpp enforces. So the prediction is made for that.

    Raises:
        SituateError: the program fails, takes too long, or sees other devices.
    """
    model, layout, gpus = planner.model, plan.layout, planner.home.accelerators
    if plan.options.unified:
        raise SituateError("llama-fit-params has no flag for one cache of all slots")
    listed = listed_devices(program)
    devices = [*listed, *planner.home.device_names[len(listed) :]]
    rows = ask(program, path, flags(layout, plan.options, model, devices))
    build = Build(pipeline=is_pipelined(layout), dry=True)
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
    # Weights that the CPU would repack are not counted.
    options = ["--no-repack", "--fit-print", "on"]
    return read_rows(_answer(program, ["-m", path, *words, *options]))


def listed_devices(program: Path) -> list[str]:
    """The names of llama.cpp's devices on this machine, without the CPU.

    Raises:
        SituateError: the program fails or takes too long.
    """
    matches = map(DEVICE.match, _answer(program, ["--list-devices"]))
    return [match[1] for match in matches if match]


def _answer(program: Path, words: Sequence[str]) -> list[str]:
    """The lines that the program prints.

    Raises:
        SituateError: it fails or takes too long.
    """
    try:
        answer = subprocess.run(
            [str(program), *words],
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
    if answer.returncode:
        raise SituateError(f"{PROGRAM} failed: {_reason(answer.stderr)}")
    return answer.stdout.splitlines()


def _reason(text: str) -> str:
    """The line of an answer that says what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search("error|fail", line)]
    return one_line((telling or lines or ["no output"])[0])[:200]


def read_rows(lines: Iterable[str]) -> list[tuple[int, int, int]]:
    """The rows of an answer in bytes, those of GPUs first and the host's last."""
    matches = [match for line in lines if (match := ROW.match(line))]
    return [tuple(int(match[i]) * MIB for i in (2, 3, 4)) for match in matches]  # type: ignore[misc]
