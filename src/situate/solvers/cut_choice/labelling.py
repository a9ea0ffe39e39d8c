"""Cuts as a labelling problem: each op takes a class and a division among devices.

Ops cost the seconds of their longest part, and tensors between them the seconds of the slices,
transfers, sums and concatenations that turn one form into another. Ops in the same place of
repeated blocks take one label, so the problem is small. Its solution, in which kinds may have
different divisions, is one more candidate beside the enumerated cuts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter

import numpy as np

from situate.data.arrays import Floats
from situate.data.cuts import Cut, Cuts
from situate.data.graph import Op
from situate.data.letter_graph import SUM, WHOLE, LetterGraph, LetterOp, Value
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.sharding.problem import ShardingProblem
from situate.sharding.solve import solve_sharding
from situate.solvers.cut_choice.divisions import Division
from situate.solvers.cut_choice.rates import Rates

ROUNDS = 60
"""Rounds of the search for labels."""

TICKS_A_SECOND = 10**9
"""Costs of a sharding problem are whole numbers of nanoseconds."""

Form = tuple[int, int]
"""A class, `WHOLE` or `SUM`, and the number of a division from 1; (WHOLE, 0) is on one device."""

ON_ONE_DEVICE: Form = (WHOLE, 0)

PARAMETER = "parameter"
"""The kind of the op that holds a parameter."""


def labelled_cuts(
    problem: Problem, graph: LetterGraph, divisions: Sequence[Division]
) -> Iterator[Cuts]:
    """The cuts of the best labels: of all divisions together, and of each alone.

    Args:
        problem: of whole ops.
        graph: of the same step.
        divisions: of ops.
    """
    sets = [tuple(divisions), *((division,) for division in divisions)]
    for subset in filter(None, dict.fromkeys(sets)):
        labelling = Labelling(problem, graph, subset)
        plan = solve_sharding(labelling.problem, time_limit=None, rounds=ROUNDS, threads=1)
        if cuts := labelling.cuts(plan.strategies):
            yield cuts


@dataclass(frozen=True)
class _Label:
    """A choice for an op: its option and the number of a division; no option for a whole op."""

    option: int
    division: int


class Labelling:
    """The labelling problem of a step.

    Args:
        problem: of whole ops.
        graph: of the same step.
        divisions: of ops; they are numbered from 1.
    """

    def __init__(self, problem: Problem, graph: LetterGraph, divisions: Sequence[Division]) -> None:
        self._whole, self._graph = problem, graph
        self._counts = [1, *(division.count for division in divisions)]
        self._rates = [Rates.of(problem, division) for division in divisions]
        self._cuts = self._cuts_of_kinds(divisions)
        self._fractions = self._fractions_of_classes()
        self._labels = [self._labels_of(op) for op in graph.ops]
        self._is_state = [whole_op.kind == PARAMETER for whole_op in self._first_ops()]
        self._node_of = self._ties()
        self._seconds = self._seconds_of_ops()
        self._exchanges: dict[tuple[Form, Form, int], float] = {}

    @cached_property
    def problem(self) -> ShardingProblem:
        """The problem for the solver. Its ops are sets of tied ops, and tensors with several
        readers."""
        nodes = max(self._node_of) + 1
        costs: list[np.ndarray] = [np.zeros(0)] * nodes
        usages: list[np.ndarray] = [np.zeros(0)] * nodes
        for op, node, labels, seconds, is_state in zip(
            self._graph.ops, self._node_of, self._labels, self._seconds, self._is_state, strict=True
        ):
            if not len(costs[node]):
                costs[node], usages[node] = np.zeros(len(labels)), np.zeros(len(labels))
            costs[node] += [self._part_seconds(op, seconds, label, is_state) for label in labels]
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
            [_integers(cost * TICKS_A_SECOND) for cost in costs],
            [_integers(usage) for usage in usages],
            # One interval: all saved tensors are there at once.
            np.array([(0, 1)] * len(costs), np.int64),
            tuple(ordered),
            [_integers(table * TICKS_A_SECOND) for table in ordered.values()],
            int(min(limit, 2**61)),
        )

    def cuts(self, strategies: Sequence[int]) -> Cuts | None:
        """The cuts that come closest to labels; None if all ops stay whole.

        A kind has the division that most of its seconds have. A kind that ops prefer to another one
        comes first.
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
            winner = kinds[label.option]
            of_division = seconds.setdefault(winner, defaultdict(float))
            of_division[label.division] += time.min()
            for kind in kinds:
                # The winner is among `kinds`, where it gains and loses the same.
                wins[winner] += time.min()
                wins[kind] -= time.min()
        order = sorted(seconds, key=lambda kind: (-wins[kind], kind))
        cuts = tuple(
            self._cuts[kind, max(seconds[kind].items(), key=itemgetter(1))[0]] for kind in order
        )
        return Cuts(cuts) if cuts else None

    def seconds(self, cuts: Cuts) -> float:
        """The cost of the labels that ops have in these cuts."""
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
        return (total + sum(int(cost.min()) for cost in copies.values())) / TICKS_A_SECOND

    def _label_in(self, cuts: Cuts, op: LetterOp, labels: Sequence[_Label]) -> int:
        """The number of an op's label in these cuts: along the first cut that divides it."""
        for cut in cuts.cuts:
            for i, label in enumerate(labels[1:], 1):
                kind = self._graph.kinds[op.options[label.option].letter_class]
                if self._cuts[kind, label.division] == cut:
                    return i
        return 0

    def _cuts_of_kinds(self, divisions: Sequence[Division]) -> dict[tuple[str, int], Cut]:
        """By kind and number of a division, the cut with the shares that come closest."""
        units: dict[str, list[int]] = {}
        for kind, size in zip(self._graph.kinds, self._graph.units, strict=True):
            units.setdefault(kind, []).append(size)
        return {
            (kind, k): cut
            for kind, sizes in units.items()
            for k, division in enumerate(divisions, 1)
            if (cut := division.cut(kind, sizes))
        }

    def _fractions_of_classes(self) -> dict[tuple[int, int], Floats]:
        """By class and number of a division, (parts,) the share of each part in the units."""
        fractions = {}
        for c, (kind, size) in enumerate(zip(self._graph.kinds, self._graph.units, strict=True)):
            for k in range(1, len(self._counts)):
                cut = self._cuts.get((kind, k))
                if cut and (bounds := cut.bounds(size)):
                    fractions[c, k] = np.diff(bounds) / size
        return fractions

    def _labels_of(self, op: LetterOp) -> list[_Label]:
        return [_Label(-1, 0)] + [
            _Label(i, k)
            for i, option in enumerate(op.options)
            for k in range(1, len(self._counts))
            if (option.letter_class, k) in self._fractions
        ]

    def _ties(self) -> list[int]:
        """By op, the number of the set of ops that take its label."""
        number: dict[object, int] = {}
        keys = (
            (
                op.tie,
                *(
                    (self._graph.kinds[op.options[label.option].letter_class], label.division)
                    for label in labels[1:]
                ),
            )
            for op, labels in zip(self._graph.ops, self._labels, strict=True)
        )
        return [number.setdefault(key, len(number)) for key in keys]

    def _seconds_of_ops(self) -> list[Floats]:
        """(accelerators,) seconds of each op; an op that some cannot run takes no time there."""
        seconds = self._whole.seconds[:, accelerators(self._whole)]
        finite = np.where(np.isfinite(seconds), seconds, 0)
        return [finite[[*op.ops]].sum(axis=0) for op in self._graph.ops]

    def _first_ops(self) -> Iterator[Op]:
        """The first graph op of each op."""
        return (self._whole.graph.ops[op.ops[0]] for op in self._graph.ops)

    def _part_seconds(self, op: LetterOp, seconds: Floats, label: _Label, is_state: bool) -> float:
        """Seconds of the longest part, each on the device of its number."""
        if label.option < 0:
            # Devices share whole parameters among them, so that all of them update.
            return float(seconds.min()) / (len(seconds) if is_state else 1)
        share = self._fractions[op.options[label.option].letter_class, label.division]
        of_team = seconds[: len(share)]
        # Launching takes each part as long as the whole op.
        launch = np.minimum(of_team, self._rates[label.division - 1].launch)
        return float((launch + (of_team - launch) * share).max())

    def _output(self, value: Value, label: _Label) -> Form:
        if label.option < 0:
            return ON_ONE_DEVICE
        option = self._graph.ops[value[0]].options[label.option]
        return option.outputs[value[1]], label.division

    def _input(self, reader: int, position: int, label: _Label) -> Form:
        if label.option < 0:
            return ON_ONE_DEVICE
        return self._graph.ops[reader].options[label.option].inputs[position], label.division

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
        for value, uses in readers.items():
            nbytes = self._graph.ops[value[0]].sizes[value[1]]
            produced = [self._output(value, label) for label in self._labels[value[0]]]
            wanted = [
                [self._input(r, position, label) for label in self._labels[r]]
                for r, position in uses
            ]
            node, is_state = self._node_of[value[0]], self._is_state[value[0]]
            if len(uses) > 1:
                forms = sorted({form for form in chain(produced, *wanted) if form[0] != SUM})
                # Classes have numbers of their own in each block, kinds have not.
                names = tuple((self._kind(form[0]), form[1]) for form in forms)
                copy = copies.setdefault((node, value[1], names), len(costs))
                if copy == len(costs):
                    costs.append(np.zeros(len(forms)))
                    usages.append(np.zeros(len(forms)))
                # A saved whole is there once on each device, of which the producer counts one.
                saved = self._graph.ops[value[0]].saved and nbytes
                usages[copy] += [
                    saved * (self._counts[k] - 1) if form == WHOLE else 0 for form, k in forms
                ]
                yield node, copy, self._table(produced, forms, nbytes, is_state)
                node, produced, is_state = copy, forms, False
            for (r, _), forms_of_reader in zip(uses, wanted, strict=True):
                is_shared = is_state or self._is_state[r]
                table = self._table(produced, forms_of_reader, nbytes, is_shared)
                yield node, self._node_of[r], table

    def _kind(self, form: int) -> str:
        return str(form) if form < 0 else self._graph.kinds[form]

    def _table(
        self, sources: Sequence[Form], targets: Sequence[Form], nbytes: int, is_state: bool
    ) -> np.ndarray:
        """Seconds by form of the source and of the target.

        Args:
            is_state: True for a parameter or its gradient.
        """
        return np.array(
            [
                [self._exchange(a, b, nbytes) / self._sharers(a, b, is_state) for b in targets]
                for a in sources
            ]
        )

    def _sharers(self, source: Form, target: Form, is_state: bool) -> int:
        """The number of devices that do such exchanges at once, each for parameters of its own."""
        is_shared = is_state and ON_ONE_DEVICE in (source, target)
        return max(self._counts[source[1]], self._counts[target[1]]) if is_shared else 1

    def _exchange(self, source: Form, target: Form, nbytes: int) -> float:
        if source == target:
            return 0.0
        key = source, target, nbytes
        if key not in self._exchanges:
            k, n = self._counts[source[1]], self._counts[target[1]]
            # The larger team's rates; division 0 is of whole ops and has none.
            rates = self._rates[max((k, source[1]), (n, target[1]))[1] - 1]
            self._exchanges[key] = rates.exchange((source[0], k), (target[0], n), nbytes)
        return self._exchanges[key]


def _integers(values: np.ndarray) -> np.ndarray:
    # Limited, so that sums of costs stay within 64 bits.
    return np.ascontiguousarray(np.rint(np.minimum(values, 2.0**55))).astype(np.int64)
