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
    arguments: Sequence[str],
) -> bytes:
    """A script for `sh FILE COMMAND...`: the command, in this environment, with these arguments.

    Args:
        devices: names of the devices of the stages, for its first comment.
    """
    title = f"{problem.graph.name} on {problem.cluster.name}: {', '.join(devices)}"
    lines = ["#!/bin/sh", f"# {printable(title)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    lines += [f'exec "$@" {shlex.join(arguments)}', ""]
    return "\n".join(lines).encode()
