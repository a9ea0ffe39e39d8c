"""Shell scripts that run any command with a plan's settings behind it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from situate.data.problem import Problem
from situate.report.text import printable


def script(
    problem: Problem,
    devices: Sequence[str],
    environment: Mapping[str, str],
    arguments: Sequence[str] = (),
    launcher: Sequence[str] = (),
    note: str = "",
) -> bytes:
    """A script for `sh FILE COMMAND...`: the command, in this environment, with these arguments.

    Args:
        devices: names of the stages' devices, for the first comment.
        launcher: the launching command before it.
        note: a further comment.
    """
    title = f"{problem.graph.name} on {problem.cluster.name}: {', '.join(devices)}"
    lines = ["#!/bin/sh", *(f"# {printable(text)}" for text in (title, note) if text)]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    parts = ("exec", shlex.join(launcher), '"$@"', shlex.join(arguments))
    lines += [" ".join(part for part in parts if part), ""]
    return "\n".join(lines).encode()
