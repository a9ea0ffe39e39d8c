"""Fresh processes, timed from outside.

Run as a program, it is the small parent that measures one of them. The peak memory of a process
includes its parent's at the start, so a large parent would hide the child's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Child:
    """A process that has ended: wall and CPU seconds, and the most bytes it held."""

    status: int
    output: str
    errors: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def run(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Child:
    """Run a program to its end."""
    command = module("benchmarks.lib.child", *arguments)
    process = subprocess.run(
        command, stdout=subprocess.PIPE, check=True, env={**os.environ, **(environment or {})}
    )
    return Child(**json.loads(process.stdout))


def _measured(arguments: Sequence[str]) -> Child:
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(arguments, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        return Child(
            process.returncode,
            output.read(),
            errors.read(),
            seconds,
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss * 1024,
        )


def python(code: str) -> list[str]:
    """The command that runs Python code."""
    return [sys.executable, "-c", code]


def situate(*arguments: str) -> list[str]:
    """The command line's command: the script where it is installed, else the module."""
    script = Path(sys.executable).with_name("situate")
    return [str(script), *arguments] if script.exists() else module("situate", *arguments)


def module(name: str, *arguments: str) -> list[str]:
    """The command that runs a module."""
    return [sys.executable, "-m", name, *arguments]


if __name__ == "__main__":
    print(json.dumps(asdict(_measured(sys.argv[1:]))))
