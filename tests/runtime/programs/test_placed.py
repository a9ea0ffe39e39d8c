"""A tensor that crosses shares memory only with tensors that all receivers have read."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from torch import nn

torch = pytest.importorskip("torch")

from situate.runtime.memory import ALIGNMENT  # noqa: E402
from situate.runtime.programs.placed import (  # noqa: E402
    Crossing,
    completed_ops,
    offsets,
    place,
)
from situate.runtime.programs.program import (  # noqa: E402
    Roles,
    capture_program,
)
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.steps import cut, program, scattered, shuffled  # noqa: E402


class Case:
    """Ops in a random order on random devices, of which each reads a few earlier ones."""

    def __init__(self, seed: int, ops: int = 24, devices: int = 3) -> None:
        random = np.random.default_rng(seed)
        self.placement = np.append(np.arange(devices), random.integers(devices, size=ops - devices))
        self.placement = self.placement.astype(np.int32)
        self.order = random.permutation(ops).tolist()
        self.rank = {op: i for i, op in enumerate(self.order)}
        self.reads = {
            op: {self.order[j] for j in random.integers(i, size=2)} if i else set()
            for i, op in enumerate(self.order)
        }
        self.sizes = random.integers(1, 400, size=ops).tolist()
        self.senders = {
            op: [s for s in sources if self.placement[s] != self.placement[op]]
            for op, sources in self.reads.items()
        }
        self.clock = completed_ops(self.placement, self.order, self.senders)

    def readers(self, op: int) -> list[int]:
        """The ops that receive an op's tensors."""
        return [reader for reader, senders in self.senders.items() if op in senders]

    def position(self, op: int) -> int:
        """The number of ops of its device that have run when it has."""
        device = self.placement[op]
        same = [o for o in self.order if self.placement[o] == device]
        return same.index(op) + 1

    def crossings(self) -> list[Crossing]:
        cut_program = []
        for op in range(len(self.order)):
            last: dict[int, int] = {}
            for reader in self.readers(op):
                device = int(self.placement[reader])
                last[device] = max(last.get(device, 0), self.position(reader))
            if last:
                cut_program.append(Crossing(self.sizes[op], op, last))
        return cut_program

    def before(self) -> dict[int, set[int]]:
        """By op, those that have ended when it computes: followed step by step."""
        cut_program: dict[int, set[int]] = {}
        previous: dict[int, int] = {}
        for op in self.order:
            device = int(self.placement[op])
            direct = [*self.senders[op], *([previous[device]] if device in previous else [])]
            cut_program[op] = {*direct, *(o for d in direct for o in cut_program[d])}
            previous[device] = op
        return cut_program


@pytest.fixture(params=range(20))
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


# The vector clock and the shared memory, on random programs.
def test_completed_ops_counts_certain_ends(case: Case) -> None:
    for op, completed in case.before().items():
        counts = [sum(case.placement[o] == d for o in completed) for d in range(3)]
        assert case.clock[op].tolist() == counts


def test_memory_is_shared_only_with_what_was_read(case: Case) -> None:
    crossings = case.crossings()
    begin, sizes = offsets(crossings, case.order, case.clock)
    before = case.before()
    for (i, one), (j, other) in combinations(enumerate(crossings), 2):
        apart = begin[i] + one.nbytes <= begin[j] or begin[j] + other.nbytes <= begin[i]
        first, second = sorted((one, other), key=lambda c: case.rank[c.sender])
        assert apart or set(case.readers(first.sender)) <= before[second.sender]
    assert all(at % ALIGNMENT == 0 for at in begin)
    for crossing, at in zip(crossings, begin, strict=True):
        home = crossing.home
        assert home == min(case.placement[reader] for reader in case.readers(crossing.sender))
        assert sum(sizes[:home]) <= at
        assert at + crossing.nbytes <= sum(sizes[: home + 1])


def test_memory_is_shared_at_all() -> None:
    cases = [Case(seed) for seed in range(20)]
    used = sum(sum(offsets(case.crossings(), case.order, case.clock)[1]) for case in cases)
    apart = sum(-(-c.nbytes // ALIGNMENT) * ALIGNMENT for case in cases for c in case.crossings())
    assert used < 0.95 * apart


# Captured steps cut along placements.
def test_nothing_crosses() -> None:
    clock = completed_ops(np.zeros(2, np.int32), [0, 1], {})
    assert clock.tolist() == [[0], [1]]
    assert offsets([], [0, 1], clock) == ([], [0])


@pytest.mark.parametrize("name", MODELS)
def test_the_graphs_tensors_cross(name: str) -> None:
    cut_program = program(name, "adam")
    graph, roles = cut_program.graph, Roles(cut_program)
    placement = scattered(graph, 3, seed=1)
    placed_step = place(cut_program, placement, shuffled(graph, 1), 3)
    kinds = {op: roles.of(op) for op in range(len(graph.ops))}
    crossing = {
        tensor.name
        for tensor in graph.tensors
        if kinds[tensor.producer] not in ("input", "tangent")
        and {placement[op] for op in tensor.consumers} - {placement[tensor.producer]}
    }
    assert len(placed_step.names.channels) == len(placed_step.channels) == len(crossing)
    owners = sorted(roles.owner[storage] for storage in placed_step.names.channels)
    tensors = {tensor.name: tensor.producer for tensor in graph.tensors}
    assert owners == sorted(tensors[tensor] for tensor in crossing)


def test_a_tensor_that_many_read_elsewhere_crosses_once() -> None:
    model = nn.Linear(3, 3)

    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = model(x)
        return y.exp().sum() + y.tanh().sum() + y.view(-1).sin().sum()

    cut_program = capture_program(model, (torch.ones(2, 3),), loss)
    graph = cut_program.graph
    names = [op.name for op in graph.ops]
    product = names.index("addmm")
    placement = np.ones(len(names), np.int32)
    for op in (product, *(i for i, op in enumerate(graph.ops) if op.group or op.kind == "input")):
        placement[op] = 0
    placed_step = place(cut_program, placement, range(len(names)), 2)
    text = placed_step.sources[0].text(timed=False)
    sent = text.count("send") + text.count("post")
    carried = {storage[0].name for storage in placed_step.names.channels}
    assert "addmm" in carried
    assert (
        sent
        == sum(placement[Roles(cut_program).owner[s]] == 0 for s in placed_step.names.channels)
        == 1
    )


def test_state_is_at_home_where_it_is_placed() -> None:
    cut_program = program("odd", "adamw")
    placement = scattered(cut_program.graph, 3, seed=2)
    placed_step = place(cut_program, placement, shuffled(cut_program.graph, 2), 3)
    where = dict(zip((op.name for op in cut_program.graph.ops), placement.tolist(), strict=True))
    assert {path: placed_step.home[path] for path in ("first.weight", "second.bias", "seen")} == {
        path: where[path] for path in ("first.weight", "second.bias", "seen")
    }
    assert placed_step.home.keys() == placed_step.names.state.keys()


def test_only_devices_that_do_something_are_used() -> None:
    cut_program = program("towers")
    graph = cut_program.graph
    ops = len(graph.ops)
    placement = np.full(ops, 2, np.int32)
    assert place(cut_program, placement, range(ops), 4).used == [2]
    placement[[op.kind == "input" for op in graph.ops]] = 0
    assert place(cut_program, placement, range(ops), 4).used == [2]
    assert cut(cut_program, 3).used == [0, 1, 2]


def test_names_mean_the_same_on_every_device() -> None:
    cut_program = cut(program("convolutional", "adam"), 3)
    assert sorted(cut_program.names.seeds.values()) == [0, 1]
    assert sorted(cut_program.names.state.values()) == list(range(len(cut_program.names.state)))
    text = "".join(source.text(timed=False) for source in cut_program.sources)
    assert [text.count(f"seed{k}()") for k in (0, 1)] == [1, 1]
