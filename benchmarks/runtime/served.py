"""A step that runs in other processes, called like one that runs here.

The other end reads a line, runs the step, and answers with a line; its first line describes
the step.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class Served:
    """Processes that make one step together.

    Args:
        commands: of each of them.
        environment: beside this process's own.

    Attributes:
        answers: the first line of each, decoded.

    Raises:
        RuntimeError: one of them ended.
    """

    def __init__(
        self, commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None
    ) -> None:
        pipe = subprocess.PIPE
        around = {**os.environ, **(environment or {})}
        self._processes = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, env=around) for command in commands
        ]
        try:
            self.answers = [json.loads(self._line(process)) for process in self._processes]
        except BaseException:
            self.close()
            raise

    def __call__(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(b"step\n")
            process.stdin.flush()
        for process in self._processes:
            self._line(process)

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{process.args!r} ended with exit status {process.wait()}")
        return line

    def close(self) -> None:
        """End them."""
        for process in self._processes:
            process.kill()
            process.wait()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(make: Callable[[], tuple[Any, Callable[[], object]]]) -> None:
    """The other end: `make` returns the first line, as JSON can hold it, and the step. Other
    output goes to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    first, step = make()
    print(json.dumps(first), file=answers, flush=True)
    for _ in sys.stdin:
        step()
        print("done", file=answers, flush=True)
