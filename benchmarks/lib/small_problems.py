"""Small problems by number, solved one by one: the command line and the rows of benchmarks that
compare plans with exhaustive search."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.lib.record import Row
from benchmarks.lib.workers import add_workers, jobs


def solved_problems(
    description: str,
    row: Callable[[float, int, int], Row],
    problems: int,
    arguments: list[str] | None,
) -> tuple[argparse.Namespace, list[Row]]:
    """The options, and the row of every problem.

    Args:
        description: of the benchmark.
        row: of a time limit in seconds, a seed and the number of a problem.
        problems: solved by default.
        arguments: of the command line.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--problems", type=int, default=problems)
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--time-limit", type=float, default=1.0, help="seconds of `auto` for each")
    parser.add_argument("--seed", type=int, default=0)
    add_workers(parser, 1, "problems")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.problems)
    with jobs(options, row, options.time_limit, options.seed) as solved:
        return options, list(solved.map((seed,) for seed in seeds))
