"""Which values of a captured step share memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, fx, nn  # noqa: E402

from situate.runtime.equality import compare  # noqa: E402
from situate.runtime.programs.kernels import view  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.flow import Storage, storages  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402
from tests.runtime.steps import program, step_of  # noqa: E402

X = torch.arange(4.0)

SPLITS: dict[str, Callable[[Tensor], Any]] = {
    "split": lambda x: x.split([1, 3], 1),
    "unsafe_split": lambda x: x.unsafe_split(2, 1),
    "unsafe_split_with_sizes": lambda x: x.unsafe_split_with_sizes([1, 3], 1),
    "unsafe_chunk": lambda x: x.unsafe_chunk(2, 1),
}


# Views share the storage of their base.
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


# Copies and conjugates are storages of their own.
class Counting(nn.Module):
    """Returns its count before and after an increment."""

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
    program = capture_program(model, (x,), None, training=False)
    assert [op.kind for op in program.graph.ops].count("aten.clone") == 1
    with step_of(program, model, None, 1) as step:
        for steps in range(3):
            before, part, after = step(x)
            assert torch.equal(before, steps * x)
            assert torch.equal(part, steps * x[1:])
            assert torch.equal(after, (steps + 1) * x)


class Squared(nn.Module):
    """The square of complex numbers that are kept as pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs = nn.Parameter(torch.randn(4, 2, generator=torch.Generator().manual_seed(0)))

    def forward(self, x: Tensor) -> Tensor:
        numbers = torch.view_as_complex(self.pairs)
        return torch.view_as_real(numbers * numbers.conj() * x)


class Conjugate(nn.Module):
    """The conjugate of a spectrum, as pairs."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.view_as_real(torch.fft.fft(x).conj().resolve_conj())


class Negative(nn.Module):
    """The imaginary part of a conjugate, which is a negative view, as numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.fft(x).conj().imag.resolve_neg().view(torch.int32)


@pytest.mark.parametrize("model", [Conjugate(), Negative(), Squared()], ids=lambda m: str(m)[:-2])
def test_conjugates_are_made_where_a_step_infers(model: nn.Module) -> None:
    step = partial(placed_step, given=((X,), None))
    assert compare(model, (X,), None, None, step, threads=1).within(0.0)


def test_conjugates_are_made_where_a_step_trains() -> None:
    def loss(model: nn.Module, x: Tensor) -> Tensor:
        return model(x).square().mean()

    step = partial(placed_step, given=((X,), loss))
    assert compare(Squared(), (X,), loss, sgd, step, threads=1).within(0.0)


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
        inputs = (node.meta["val"] for node in graph.nodes if node.op == "placeholder")
        with torch.no_grad():
            self.run(*(_like(value) for value in inputs))

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return view()(*args) if target is torch.ops.aten.view.default else target(*args, **kwargs)

    def run_node(self, node: fx.Node) -> Any:
        self.values[node] = super().run_node(node)
        return self.values[node]


def _like(value: Tensor) -> Tensor:
    fill = torch.ones if value.is_floating_point() else torch.zeros
    return fill(value.shape, dtype=value.dtype)


def test_what_is_written_over_an_input_is_an_output() -> None:
    def build() -> Any:
        return nn.Linear(4, 4), torch.ones(2, 4), lambda model, x: model(x.mul_(2)).mean()

    outputs = [tensor.name for tensor in capture(build).tensors if tensor.output]
    assert sorted(outputs) == ["loss/mean:0", "loss/mul:0"]
