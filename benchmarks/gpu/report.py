"""The report: one JSON file, valid at every moment and below a megabyte."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.gpu.stages import Outcome

FORMAT = "situate-gpu"

MOST_BYTES = 1_000_000

SAMPLES = "samples"
"""The figure of a stage that is left out first where the file would become too large."""

ROOT = Path(__file__).parents[2]


class Report:
    """The outcomes of all stages so far.

    Args:
        path: of the file, which is written anew with each outcome.
        head: entries above the stages.
        stages: names, in the order of the file.
    """

    def __init__(self, path: Path, head: dict[str, Any], stages: Iterable[str]) -> None:
        self._path, self._head = path, head
        self._began = time.monotonic()
        self._stages = {name: asdict(Outcome("not reached")) for name in stages}
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write(finished=False)

    def add(self, name: str, outcome: Outcome) -> None:
        """Take over a stage's outcome, and write the file."""
        with self._lock:
            self._stages[name] = asdict(outcome) | {"seconds": round(outcome.seconds, 2)}
            self._write(finished=False)

    def finish(self) -> None:
        """Write that nothing more will come."""
        with self._lock:
            self._write(finished=True)

    def verdicts(self) -> dict[str, str]:
        """The verdict on each stage."""
        return {name: str(entry["verdict"]) for name, entry in self._stages.items()}

    def _write(self, finished: bool) -> None:
        seconds = round(time.monotonic() - self._began, 1)
        content = self._head | {"finished": finished, "seconds": seconds, "stages": self._stages}
        part = self._path.with_name(f".{self._path.name}.part")
        part.write_bytes(encode(content))
        os.replace(part, self._path)


def encode(content: dict[str, Any], most: int = MOST_BYTES) -> bytes:
    """The JSON of a report, within so many bytes: the samples of the largest stages are left out
    first, then all figures of the largest."""
    text = _text(content)
    for figures in (_without_samples, _without_figures):
        if len(text) <= most:
            return text
        stages = dict(content["stages"])
        for name in sorted(stages, key=lambda name: -len(_text(stages[name]))):
            if len(text) > most:
                stages[name] = figures(stages[name])
                text = _text(content | {"stages": stages})
        content = content | {"stages": stages}
    return text


def _text(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _without_samples(entry: dict[str, Any]) -> dict[str, Any]:
    figures = {key: value for key, value in entry["figures"].items() if key != SAMPLES}
    return entry | {"figures": figures, "left_out": SAMPLES}


def _without_figures(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {"figures": {}, "left_out": "figures"}


def head(options: dict[str, Any], commit_file: Path) -> dict[str, Any]:
    """The entries of a report above its stages: the program, the command, the host."""
    return {
        "format": FORMAT,
        "version": 1,
        "commit": commit(commit_file),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "options": options,
        "python": platform.python_version(),
        "host": {"os": platform.platform(), "cores": os.cpu_count()},
    }


def commit(file: Path) -> str:
    """The commit that was written down beside the wheels; without it, that of the checkout."""
    if file.is_file():
        return file.read_text().strip()
    try:
        return checkout()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def checkout() -> str:
    """The commit of this checkout, with `+dirty` if tracked files differ from it.

    Raises:
        OSError, subprocess.CalledProcessError: git is not there, or this is no checkout.
    """
    status = _git("status", "--porcelain", "--untracked-files=no")
    return _git("rev-parse", "HEAD") + ("+dirty" if status else "")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def one_line(verdict: str, error: str, most: int = 100) -> str:
    """The line of an error that says most: the last of a traceback, else the first."""
    lines = error.splitlines() or [""]
    return lines[-1 if verdict == "failed" else 0][:most]


def say(text: str) -> None:
    """One line of progress, at once."""
    print(text, file=sys.stderr, flush=True)
