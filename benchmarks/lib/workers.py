"""The option `--workers` of benchmarks, whose runs, graphs and grid points are independent jobs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from situate.evaluators.workers.jobs import Jobs
from situate.evaluators.workers.places import Place


def add_workers(parser: argparse.ArgumentParser, default: int | str, what: str) -> None:
    """Add the option.

    Args:
        what: the work that workers do side by side, in the plural.
    """
    parser.add_argument(
        "--workers",
        default=str(default),
        metavar="N|ray|ray://HOST:PORT",
        help=f"processes that do {what} side by side, or a Ray cluster; default: {default}",
    )


def jobs(
    options: argparse.Namespace, function: Callable[..., Any], *shared: Any
) -> AbstractContextManager[Jobs]:
    """The calls of a function where `--workers` says, with arguments that all have in common."""
    return Place.parse(options.workers).jobs(function, shared=shared)
