"""Cuts as a labelling problem: each op takes a class and a number of parts.

Ops cost the seconds of their longest part, and tensors between them the seconds of the slices,
transfers, sums and concatenations that turn one form into another. Ops in the same place of
repeated blocks take one label, so the problem is small. Its solution, in which kinds may have
different numbers of parts, is one more candidate beside the enumerated cuts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter

import numpy as np

from situate.data.cuts import Cut, Cuts
from situate.data.letter_graph import SUM, WHOLE, LetterGraph, LetterOp, Value
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.sharding.problem import ShardingProblem
from situate.sharding.solve import solve_sharding

ROUNDS = 60
"""Rounds of the search for labels."""

SECOND = 10**9
"""A second in the whole numbers of a sharding problem."""

Form = tuple[int, int]
"""A class, `WHOLE` or `SUM`, and the number of parts; (WHOLE, 1) is on one device."""

ONE: Form = (WHOLE, 1)


def labelled_cuts(problem: Problem, graph: LetterGraph, counts: Sequence[int]) -> Iterator[Cuts]:
    """The cuts of the best labels: of all numbers of parts together, and of each alone.

    Args:
        problem: of whole ops.
        graph: of the same step.
        counts: numbers of parts.
    """
    sets = [tuple(counts), *((count,) for count in counts)] if len(counts) > 1 else [tuple(counts)]
    for own in filter(None, sets):
        labelling = Labelling(problem, graph, own)
        plan = solve_sharding(labelling.problem, time_limit=None, rounds=ROUNDS, threads=1)
        if cuts := labelling.cuts(plan.strategies):
            yield cuts


@dataclass(frozen=True)
class Rates:
    """Seconds of a team's exchanges, from the slowest link and device of the team.

    Attributes:
        latency, bandwidth: of a link.
        shares_channel: True if a device sends to all others through one channel.
        launch: seconds of a launch.
        memory: bytes per second of a device's own memory.
    """

    latency: float
    bandwidth: float
    shares_channel: bool
    launch: float
    memory: float

    @classmethod
    def of(cls, problem: Problem, count: int) -> Rates:
        """The rates of the first `count` accelerators."""
        members = accelerators(problem)[: max(2, count)]
        pairs = [(a, b) for a in members for b in members if a != b]
        devices = [problem.cluster.devices[d] for d in members]
        channels = {int(problem.channel[a, b]) for a, b in pairs}
        return cls(
            max((float(problem.latency[a, b]) for a, b in pairs), default=0.0),
            min((float(problem.bandwidth[a, b]) for a, b in pairs), default=np.inf),
            len(channels) < len(pairs),
            max(device.launch for device in devices),
            min(device.bandwidth for device in devices),
        )

    def send(self, nbytes: float, receivers: int) -> float:
        """Seconds in which each device sends so many bytes to each of so many others."""
        one = self.latency + nbytes / self.bandwidth
        return one * (receivers if self.shares_channel else 1) if receivers else 0.0

    def kernel(self, nbytes: float, launches: int = 1) -> float:
        """Seconds of ops that read and write so many bytes together."""
        return launches * self.launch + nbytes / self.memory

    def exchange(self, source: Form, target: Form, nbytes: int) -> float:
        """Seconds until a tensor of one form is there in another."""
        (have, k), (want, n) = source, target
        if source == target:
            return 0.0
        if have == SUM:
            return self._summed(k, target, nbytes)
        if have == WHOLE:
            return self._spread(k, target, nbytes)
        if want == WHOLE:
            others = n - 1 if n > 1 else 1
            return self.send(nbytes / k, others) + self.kernel(2 * nbytes)
        pieces = self.kernel(2 * nbytes / k, n) + self.kernel(2 * nbytes / n)
        return pieces + self.send(nbytes / (k * n), n - 1)

    def _spread(self, k: int, target: Form, nbytes: int) -> float:
        """From a whole tensor, on one device or on each of k."""
        want, n = target
        if want == WHOLE:
            return 0.0 if k >= n else self.send(nbytes, n - 1)
        if k == n:
            return self.kernel(2 * nbytes / n)
        return self.kernel(2 * nbytes, n) + self.send(nbytes / n, n - 1)

    def _summed(self, k: int, target: Form, nbytes: int) -> float:
        """From partial results."""
        want, n = target
        if want != WHOLE:
            adds = self.kernel(3 * (k - 1) * nbytes / n, k - 1)
            return self.kernel(2 * nbytes, n) + self.send(nbytes / n, n - 1) + adds
        if n == 1:
            return self.send(nbytes, 1) + self.kernel(3 * (k - 1) * nbytes, k - 1)
        return self._summed(k, (0, k), nbytes) + self.exchange((0, k), target, nbytes)


@dataclass(frozen=True)
class _Label:
    """A choice for an op: its option and the number of parts; no option for a whole op."""

    option: int
    count: int


class Labelling:
    """The labelling problem of a step.

    Args:
        problem: of whole ops.
        graph: of the same step.
        counts: numbers of parts.
    """

    def __init__(self, problem: Problem, graph: LetterGraph, counts: Sequence[int]) -> None:
        self._whole, self._graph, self._counts = problem, graph, counts
        self._rates = {count: Rates.of(problem, count) for count in counts}
        self._labels = [self._labels_of(op) for op in graph.ops]
        self._node_of = self._ties()
        self._seconds = [self._seconds_of(op) for op in graph.ops]
        self._exchanges: dict[tuple[Form, Form, int], float] = {}

    @cached_property
    def problem(self) -> ShardingProblem:
        """The problem for the solver. Its ops are sets of tied ops, and tensors with several
        readers."""
        nodes = max(self._node_of) + 1
        costs: list[np.ndarray] = [np.zeros(0)] * nodes
        usages: list[np.ndarray] = [np.zeros(0)] * nodes
        for op, node, labels, seconds in zip(
            self._graph.ops, self._node_of, self._labels, self._seconds, strict=True
        ):
            if not len(costs[node]):
                costs[node], usages[node] = np.zeros(len(labels)), np.zeros(len(labels))
            costs[node] += [self._part_seconds(seconds, label.count) for label in labels]
            usages[node] += op.saved
        tables: dict[tuple[int, int], np.ndarray] = {}
        for a, b, table in self._tables(costs, usages):
            if a == b:
                costs[a] += table.diagonal()
            elif (a, b) in tables:
                tables[a, b] += table
            elif (b, a) in tables:
                tables[b, a] += table.T
            else:
                tables[a, b] = table
        ordered = {
            (min(pair), max(pair)): table if pair[0] < pair[1] else table.T
            for pair, table in tables.items()
        }
        room = self._whole.capacity[accelerators(self._whole)].astype(float).sum()
        limit = max(0.0, room - float(self._whole.persistent.sum()))
        return ShardingProblem(
            self._whole.graph.name,
            [_integers(cost * SECOND) for cost in costs],
            [_integers(usage) for usage in usages],
            np.array([(0, 1)] * len(costs), np.int64),
            tuple(ordered),
            [_integers(table * SECOND) for table in ordered.values()],
            int(min(limit, 2**61)),
        )

    def cuts(self, strategies: Sequence[int]) -> Cuts | None:
        """The cuts that come closest to labels; None if all ops stay whole.

        A kind has the number of parts that most of its seconds have. A kind that ops prefer to
        another one comes first.
        """
        seconds: dict[str, dict[int, float]] = {}
        wins: dict[str, float] = defaultdict(float)
        for op, node, labels, time in zip(
            self._graph.ops, self._node_of, self._labels, self._seconds, strict=True
        ):
            label = labels[strategies[node]]
            if label.option < 0:
                continue
            kinds = [self._graph.kinds[option.letter_class] for option in op.options]
            own = kinds[label.option]
            of_count = seconds.setdefault(own, defaultdict(float))
            of_count[label.count] += time
            for kind in kinds:
                wins[own] += time
                wins[kind] -= time
        order = sorted(seconds, key=lambda kind: (-wins[kind], kind))
        cuts = tuple(
            Cut(kind, (1,) * max(seconds[kind].items(), key=itemgetter(1))[0]) for kind in order
        )
        return Cuts(cuts) if cuts else None

    def seconds(self, cuts: Cuts) -> float:
        """The cost of the labels that ops have in these cuts; 0 for unequal shares, which have no
        labels."""
        if any(len(set(cut.shares)) > 1 for cut in cuts.cuts):
            return 0.0
        problem, ops = self.problem, max(self._node_of) + 1
        strategies = np.zeros(len(problem.costs), np.int64)
        for op, node, labels in zip(self._graph.ops, self._node_of, self._labels, strict=True):
            strategies[node] = self._label_in(cuts, op, labels)
        total = sum(int(problem.costs[node][strategies[node]]) for node in range(ops))
        copies = {node: problem.costs[node].copy() for node in range(ops, len(problem.costs))}
        for (a, b), table in zip(problem.edges, problem.tables, strict=True):
            # Numbers of copies follow those of ops, and copies have no edge among themselves.
            if b in copies:
                copies[b] += table[strategies[a]]
            else:
                total += int(table[strategies[a], strategies[b]])
        return (total + sum(int(cost.min()) for cost in copies.values())) / SECOND

    def _label_in(self, cuts: Cuts, op: LetterOp, labels: Sequence[_Label]) -> int:
        """The number of an op's label in these cuts: along the first cut that divides it."""
        for cut in cuts.cuts:
            for i, label in enumerate(labels[1:], 1):
                kind = self._graph.kinds[op.options[label.option].letter_class]
                if kind == cut.name and label.count == len(cut.shares):
                    return i
        return 0

    def _labels_of(self, op: LetterOp) -> list[_Label]:
        labels = [_Label(-1, 1)]
        for k, option in enumerate(op.options):
            units = self._graph.units[option.letter_class]
            labels += [
                _Label(k, count) for count in self._counts if Cut("_", (1,) * count).bounds(units)
            ]
        return labels

    def _ties(self) -> list[int]:
        """By op, the number of the set of ops that take its label."""
        number: dict[object, int] = {}
        keys = (
            (
                op.tie,
                *(
                    (self._graph.kinds[op.options[label.option].letter_class], label.count)
                    for label in labels[1:]
                ),
            )
            for op, labels in zip(self._graph.ops, self._labels, strict=True)
        )
        return [number.setdefault(key, len(number)) for key in keys]

    def _seconds_of(self, op: LetterOp) -> float:
        """Seconds on the fastest accelerator."""
        own = self._whole.seconds[np.ix_(op.ops, accelerators(self._whole))].sum(axis=0)
        least = float(own.min())
        return least if np.isfinite(least) else 0.0

    def _part_seconds(self, seconds: float, count: int) -> float:
        launch = min(seconds, self._rates[count].launch) if count > 1 else 0.0
        return launch + (seconds - launch) / count

    def _output(self, value: Value, label: _Label) -> Form:
        if label.option < 0:
            return ONE
        own = self._graph.ops[value[0]].options[label.option].outputs[value[1]]
        return own, label.count

    def _input(self, reader: int, position: int, label: _Label) -> Form:
        if label.option < 0:
            return ONE
        return self._graph.ops[reader].options[label.option].inputs[position], label.count

    def _tables(
        self, costs: list[np.ndarray], usages: list[np.ndarray]
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """Pairs of nodes with the seconds between their labels. A tensor that several ops read adds
        a node, so that it is exchanged once for all of them."""
        readers: dict[Value, list[tuple[int, int]]] = {}
        for r, op in enumerate(self._graph.ops):
            for position, value in enumerate(op.reads):
                readers.setdefault(value, []).append((r, position))
        copies: dict[object, int] = {}
        for value, own in readers.items():
            nbytes = self._graph.ops[value[0]].sizes[value[1]]
            produced = [self._output(value, label) for label in self._labels[value[0]]]
            wanted = [
                [self._input(r, position, label) for label in self._labels[r]]
                for r, position in own
            ]
            node = self._node_of[value[0]]
            if len(own) > 1:
                forms = sorted({form for form in chain(produced, *wanted) if form[0] != SUM})
                # Classes have numbers of their own in each block, kinds have not.
                names = tuple((self._kind(form[0]), form[1]) for form in forms)
                copy = copies.setdefault((node, value[1], names), len(costs))
                if copy == len(costs):
                    costs.append(np.zeros(len(forms)))
                    usages.append(np.zeros(len(forms)))
                saved = self._graph.ops[value[0]].saved and nbytes
                usages[copy] += [saved * (n - 1) if form == WHOLE else 0 for form, n in forms]
                yield node, copy, self._table(produced, forms, nbytes)
                node, produced = copy, forms
            for (r, _), forms_of_reader in zip(own, wanted, strict=True):
                yield node, self._node_of[r], self._table(produced, forms_of_reader, nbytes)

    def _kind(self, form: int) -> str:
        return str(form) if form < 0 else self._graph.kinds[form]

    def _table(self, sources: Sequence[Form], targets: Sequence[Form], nbytes: int) -> np.ndarray:
        return np.array([[self._exchange(a, b, nbytes) for b in targets] for a in sources])

    def _exchange(self, source: Form, target: Form, nbytes: int) -> float:
        if source == target:
            return 0.0
        key = source, target, nbytes
        if key not in self._exchanges:
            rates = self._rates[max(source[1], target[1], self._counts[0])]
            self._exchanges[key] = rates.exchange(source, target, nbytes)
        return self._exchanges[key]


def _integers(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.rint(np.minimum(values, 2.0**55))).astype(np.int64)
