"""A program cut along a placement: every tensor crosses once, whoever reads it."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.runtime.programs.placed import place  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.runtime.programs.roles import Roles  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.steps import cut, program, scattered, shuffled  # noqa: E402


@pytest.mark.parametrize("name", MODELS)
def test_what_crosses_is_what_the_graph_says(name: str) -> None:
    found = program(name, "adam")
    graph, roles = found.graph, Roles(found)
    placement = scattered(graph, 3, seed=1)
    placed = place(found, placement, shuffled(graph, 1), 3)
    kinds = {op: roles.of(op) for op in range(len(graph.ops))}
    crossing = {
        tensor.name
        for tensor in graph.tensors
        if kinds[tensor.producer] not in ("input", "tangent")
        and {placement[op] for op in tensor.consumers} - {placement[tensor.producer]}
    }
    assert len(placed.names.channels) == len(placed.channels) == len(crossing)
    owners = sorted(roles.owner[storage] for storage in placed.names.channels)
    tensors = {tensor.name: tensor.producer for tensor in graph.tensors}
    assert owners == sorted(tensors[tensor] for tensor in crossing)


def test_a_tensor_that_many_read_elsewhere_crosses_once() -> None:
    model = nn.Linear(3, 3)

    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = model(x)
        return y.exp().sum() + y.tanh().sum() + y.view(-1).sin().sum()

    found = capture_program(model, (torch.ones(2, 3),), loss)
    graph = found.graph
    names = [op.name for op in graph.ops]
    product = names.index("addmm")
    placement = np.ones(len(names), np.int32)
    for op in (product, *(i for i, op in enumerate(graph.ops) if op.group or op.kind == "input")):
        placement[op] = 0
    placed = place(found, placement, range(len(names)), 2)
    text = placed.sources[0].text(timed=False)
    sent = text.count("send") + text.count("post")
    carried = {storage[0].name for storage in placed.names.channels}
    assert "addmm" in carried
    assert sent == sum(placement[Roles(found).owner[s]] == 0 for s in placed.names.channels) == 1


def test_state_is_at_home_where_it_is_placed() -> None:
    found = program("odd", "adamw")
    placement = scattered(found.graph, 3, seed=2)
    placed = place(found, placement, shuffled(found.graph, 2), 3)
    where = dict(zip((op.name for op in found.graph.ops), placement.tolist(), strict=True))
    assert {path: placed.home[path] for path in ("first.weight", "second.bias", "seen")} == {
        path: where[path] for path in ("first.weight", "second.bias", "seen")
    }
    assert placed.home.keys() == placed.names.state.keys()


def test_only_devices_that_do_something_are_used() -> None:
    found = program("towers")
    graph = found.graph
    ops = len(graph.ops)
    placement = np.full(ops, 2, np.int32)
    assert place(found, placement, range(ops), 4).used == [2]
    placement[[op.kind == "input" for op in graph.ops]] = 0
    assert place(found, placement, range(ops), 4).used == [2]
    assert cut(found, 3).used == [0, 1, 2]


def test_names_mean_the_same_on_every_device() -> None:
    found = cut(program("convolutional", "adam"), 3)
    assert sorted(found.names.seeds.values()) == [0, 1]
    assert sorted(found.names.state.values()) == list(range(len(found.names.state)))
    text = "".join(source.text(timed=False) for source in found.sources)
    assert [text.count(f"seed{k}()") for k in (0, 1)] == [1, 1]
