"""Runs of methods on instances, one after the other; each run's row is written at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, product, takewhile
from pathlib import Path

from situate.bench.best_known import BestKnown, Entry, Finding
from situate.bench.instances import AnyProblem, Instance, problem_hash
from situate.bench.peers import PEERS
from situate.bench.provenance import now, provenance
from situate.bench.rows import Key, Row, RowFile
from situate.bench.shardings import ShardingOutcome, size, solve_sharding_problem
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.errors import MissingExtra, SituateError, nearest
from situate.results.result import Result
from situate.solvers import METHODS, solve


# Situate's methods and other people's programs, by name.
def check_contenders(names: list[str]) -> None:
    """Raise for a name that is neither a method nor a peer, and for one that lacks its packages.

    Raises:
        SituateError: unknown name.
        MissingExtra: a peer's packages are not there; says how to install them.
    """
    for name in names:
        if name not in METHODS and name not in PEERS:
            raise SituateError(f"unknown method {name!r}{nearest(name, {*METHODS, *PEERS})}")
        if name in PEERS:
            PEERS[name].check()


def solve_with(
    problem: AnyProblem, name: str, time_limit: float, seed: int, threads: int
) -> Result | ShardingOutcome:
    """The best plan of a method or a peer.

    Raises:
        SituateError: it does not apply to the problem, or finds no plan.
    """
    if not isinstance(problem, Problem):
        return solve_sharding_problem(problem, name, time_limit, seed, threads)
    method = PEERS[name].solve if name in PEERS else solve
    return method(problem, name, time_limit=time_limit, seed=seed, threads=threads)


MOST_HISTORY = 100
"""Most improvements of a search in a row."""

WARM_UP = 0.05
"""Seconds of a first run of every method, which loads Python's lazy imports."""


@dataclass(frozen=True)
class LimitShare:
    """A time limit as a multiple of the one that an instance's publisher gives."""

    factor: float

    def seconds(self, instance: Instance) -> float:
        """
        Raises:
            SituateError: the instance has no limit of its own.
        """
        if instance.time_limit is None:
            raise SituateError("has no published time limit: give --time-limits in seconds")
        return self.factor * instance.time_limit


@dataclass(frozen=True)
class Runs:
    """Every method on every instance, with every time limit and seed.

    Attributes:
        time_limits: seconds, or multiples of the instances' own.
        threads: of each run.
    """

    instances: Sequence[Instance]
    methods: Sequence[str]
    time_limits: Sequence[float | LimitShare]
    seeds: Sequence[int]
    threads: int

    def __len__(self) -> int:
        return len(self.instances) * len(self.methods) * len(self.time_limits) * len(self.seeds)


class Bench:
    """Runs, their rows, and the table of best values that they improve.

    Args:
        rows: existing rows of this program are not run again.
        best_known: table of best values, updated with every better one.
        table: path for `best_known`, written whenever it improves; None for no file.
    """

    def __init__(
        self, runs: Runs, rows: RowFile, best_known: BestKnown, table: str | Path | None = None
    ) -> None:
        self.runs, self.rows, self.best_known = runs, rows, best_known
        self._table = table

    def run(self, stopped: Callable[[], bool] = lambda: False) -> Iterator[Row]:
        """Run the missing rows, and yield all rows in turn.

        Args:
            stopped: True once a run was interrupted. Its row is dropped, and no other run starts.

        Raises:
            SituateError: a problem that cannot be built; a plan below a bound, so that one of the
                two is wrong; a file that cannot be written.
        """
        there = {row.key: row for row in self.rows.rows}
        for row in self.rows.rows:
            self._learn_of(row)
        for run in self._runs():
            if run.key not in there:
                result, refused = run.outcome()
                if stopped():
                    return
                run.verify(result)
                there[run.key] = row = run.row(result, refused)
                self._learn_of(row)
                self.rows.add(row)
            yield there[run.key]

    def _runs(self) -> Iterator[_Run]:
        runs = self.runs
        for instance in runs.instances:
            with _error_prefix(instance):
                problem = instance.make()
                limits = [_seconds(limit, instance) for limit in runs.time_limits]
            name = problem_hash(problem)
            self._publish(instance, name)
            for limit, seed, method in product(limits, runs.seeds, runs.methods):
                yield _Run(instance, problem, name, method, limit, seed, runs.threads)

    def _publish(self, instance: Instance, name: str) -> None:
        """Add the published values of an instance to the best values."""
        if reference := instance.reference:
            bound = None if reference.bound is None else Finding(reference.bound, reference.source)
            best = Finding(reference.value, reference.source)
            self._learn(Entry(name, instance.family, instance.name, best, bound))

    def _learn_of(self, row: Row) -> None:
        """Add the values of a feasible row to the best values."""
        if row.feasible:
            best, bound = _finding(row, row.value), _finding(row, row.lower_bound)
            self._learn(Entry(row.problem, row.family, row.instance, best, bound))

    def _learn(self, entry: Entry) -> None:
        if self.best_known.learn(entry) and self._table is not None:
            self.best_known.write(self._table)


def _seconds(limit: float | LimitShare, instance: Instance) -> float:
    return limit.seconds(instance) if isinstance(limit, LimitShare) else limit


@contextmanager
def _error_prefix(instance: Instance, method: str = "") -> Iterator[None]:
    """Prefix errors with the names of the instance and the method."""
    try:
        yield
    except SituateError as error:
        names = filter(None, (instance.family, instance.name, method))
        raise SituateError(f"{': '.join(names)}: {error}") from error


@dataclass(frozen=True)
class _Run:
    """One method on one instance; `name` is the problem's hash."""

    instance: Instance
    problem: AnyProblem
    name: str
    method: str
    time_limit: float
    seed: int
    threads: int

    @property
    def key(self) -> Key:
        """The key of the run's row."""
        program = provenance().program
        return (self.name, self.method, self.time_limit, self.seed, self.threads, program)

    def outcome(self) -> tuple[Result | ShardingOutcome | None, str]:
        """The result, or None and the reason."""
        try:
            result = solve_with(self.problem, self.method, self.time_limit, self.seed, self.threads)
        except MissingExtra:
            raise
        except SituateError as error:
            return None, str(error)
        return result, ""

    def verify(self, result: Result | ShardingOutcome | None) -> None:
        """Costs of shardings are computed apart from their solvers anyway.

        Raises:
            SituateError: `Schedule.verify` rejects the plan.
        """
        if not isinstance(result, Result) or not isinstance(self.problem, Problem):
            return
        if math.isfinite(result.value):
            with _error_prefix(self.instance, self.method):
                result.schedule.verify(self.problem, allow_overflow=True)

    def _size(self) -> tuple[int, int, str]:
        """Ops, devices and objective."""
        problem = self.problem
        if isinstance(problem, Problem):
            return problem.n, problem.d, problem.objective
        return size(problem)

    def row(self, result: Result | ShardingOutcome | None, refused: str) -> Row:
        """The row of an outcome."""
        ops, devices, objective = self._size()
        has_plan = result is not None and math.isfinite(result.value)
        return Row(
            family=self.instance.family,
            instance=self.instance.name,
            problem=self.name,
            ops=ops,
            devices=devices,
            objective=objective,
            method=self.method,
            time_limit=self.time_limit,
            seed=self.seed,
            threads=self.threads,
            value=result.value if result and has_plan else None,
            feasible=bool(result and has_plan and result.feasible),
            lower_bound=result.lower_bound if result else None,
            bounded_by=result.bounded_by if result else None,
            evaluations=result.evaluations if result else 0,
            seconds=result.seconds if result else 0.0,
            history=_improvements(result) if result and has_plan and result.feasible else [],
            refused=refused,
            date=now(),
            made_by=provenance(),
        )


def _finding(row: Row, value: float | None) -> Finding | None:
    if value is None:
        return None
    program, method = row.made_by, row.method
    return Finding(
        value, method, row.time_limit, row.seed, program.version, program.commit, row.date
    )


def _improvements(result: Result | ShardingOutcome) -> list[tuple[float, float]]:
    """Seconds and values of the last improvements, each better than the one before.

    Earlier steps of the history are infeasible.
    """
    steps = [(seconds, value) for seconds, _, value in reversed(result.history)]
    falling = takewhile(lambda pair: pair[0][1] < pair[1][1], pairwise(steps))
    improvements = [*steps[:1], *(later for _, later in falling)]
    # From the last one on, so that the final value is always among them.
    return improvements[:: -(-len(improvements) // MOST_HISTORY) or 1][::-1]


def warm_up(methods: Sequence[str]) -> None:
    """Run every method for a moment.

    Raises:
        MissingExtra: a method's packages are not installed.
    """
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(3))
    problem = Problem(Graph("warm-up", ops), Cluster.identical(2))
    for method in methods:
        try:
            solve_with(problem, method, WARM_UP, 0, 1)
        except MissingExtra:
            raise
        except SituateError:
            pass  # it does not apply to these three ops
