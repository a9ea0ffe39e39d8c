"""Which values of a captured step share memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, fx, nn  # noqa: E402

from situate.readers.torch import capture  # noqa: E402
from situate.readers.torch.flow import Storage, storages  # noqa: E402
from situate.runtime.kernels import view  # noqa: E402
from situate.runtime.program import capture_program  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.steps import program, step_of  # noqa: E402

SPLITS: dict[str, Callable[[Tensor], Any]] = {
    "split": lambda x: x.split([1, 3], 1),
    "unsafe_split": lambda x: x.unsafe_split(2, 1),
    "unsafe_split_with_sizes": lambda x: x.unsafe_split_with_sizes([1, 3], 1),
    "unsafe_chunk": lambda x: x.unsafe_chunk(2, 1),
}


@pytest.mark.parametrize("how", SPLITS)
def test_a_part_is_read_from_what_was_split(how: str) -> None:
    def build() -> Any:
        return nn.Linear(4, 4), torch.ones(2, 4), lambda model, x: SPLITS[how](model(x))[1].mean()

    graph = capture(build, name="parts")
    assert not any("split" in op.kind for op in graph.ops if op.phase == "forward")
    (whole,) = (tensor for tensor in graph.tensors if tensor.name == "addmm:0")
    assert [graph.ops[j].name for j in whole.consumers] == ["loss/mean"]


def test_a_view_of_a_number_is_an_op() -> None:
    def turned(model: nn.Module, x: Tensor) -> Tensor:
        return torch.view_as_real(torch.view_as_complex(model(x)) * 1j).square().mean()

    graph = capture(lambda: (nn.Linear(4, 2), torch.ones(3, 4), turned), name="turned")
    assert [op.kind for op in graph.ops].count("aten._conj") == 1


class Counting(nn.Module):
    """Returns what it had counted before, and after."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        before = self.count.clone()
        self.count.add_(x)
        return before, before[1:], self.count.clone()


def test_a_copy_of_what_is_overwritten_is_returned_as_it_was() -> None:
    model, x = Counting(), torch.arange(3.0)
    found = capture_program(model, (x,), None, training=False)
    assert [op.kind for op in found.graph.ops].count("aten.clone") == 1
    with step_of(found, model, None, 1) as step:
        for steps in range(3):
            before, part, after = step(x)
            assert torch.equal(before, steps * x)
            assert torch.equal(part, steps * x[1:])
            assert torch.equal(after, (steps + 1) * x)


@pytest.mark.parametrize("name", MODELS)
def test_values_that_share_memory_as_they_are_computed_are_known_to(name: str) -> None:
    trace = program(name).step.trace
    computed = Computed(trace.graph)
    storage = storages(trace)
    in_memory: dict[int, set[Storage]] = {}
    for node, value in computed.values.items():
        if isinstance(value, Tensor) and value.numel():
            in_memory.setdefault(value.untyped_storage().data_ptr(), set()).add(storage[node])
    assert len(in_memory) > 1
    assert [sharing for sharing in in_memory.values() if len(sharing) > 1] == []


class Computed(fx.Interpreter):
    """Every value of a captured step, none of which is let go, on inputs of zeros and ones."""

    def __init__(self, graph: fx.Graph) -> None:
        super().__init__(fx.GraphModule(nn.Module(), graph))
        self.values: dict[fx.Node, Any] = {}
        given = (node.meta["val"] for node in graph.nodes if node.op == "placeholder")
        with torch.no_grad():
            self.run(*(_like(value) for value in given))

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return view()(*args) if target is torch.ops.aten.view.default else target(*args, **kwargs)

    def run_node(self, node: fx.Node) -> Any:
        self.values[node] = super().run_node(node)
        return self.values[node]


def _like(value: Tensor) -> Tensor:
    fill = torch.ones if value.is_floating_point() else torch.zeros
    return fill(value.shape, dtype=value.dtype)
