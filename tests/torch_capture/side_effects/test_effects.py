"""Steps whose second call computes something else, or that have effects besides computing."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.runtime.step import PlacedStep  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.side_effects.effects import check_apart  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

Loss = Callable[..., Tensor]
X = torch.linspace(-1, 1, 12).reshape(4, 3)
LAST: Tensor | None = None
SCALE = torch.ones(3)
NUMBERS = np.ones(3, np.float32)
SHARED = torch.from_numpy(NUMBERS)
CALLS = 0


def trained(loss: Loss, layer: nn.Module | None = None) -> Any:
    return layer or nn.Linear(3, 3), (X.clone(),), loss


def refusal(loss: Loss, layer: nn.Module | None = None) -> str:
    """The refusal of a step, the same of a real model as of one that is built for it."""
    with pytest.raises(SituateError) as error_info:
        capture(lambda: trained(loss, layer and type(layer)()))
    with pytest.raises(SituateError) as real:
        capture_program(*trained(loss, layer))
    assert str(error_info.value) == str(real.value)
    return str(real.value)


def mean(model: Any, x: Tensor) -> Tensor:
    out: Tensor = model(x).mean()
    return out


# A step may leave no tensor outside of the model.
def remembering(memory: Any, add: Callable[[Tensor], object]) -> Loss:
    def loss(model: Any, x: Tensor) -> Tensor:
        out = model(x)
        add(out.detach())
        return (out + sum(memory)).mean()  # type: ignore[no-any-return]

    return loss


def in_a_global(model: Any, x: Tensor) -> Tensor:
    global LAST
    out: Tensor = model(x)
    LAST, before = out.detach(), LAST
    return (out if before is None else out + before).mean()


def test_tensors_that_are_kept_outside_of_the_model_are_named_and_let_go_of() -> None:
    history: list[Tensor] = []
    latest: deque[Tensor] = deque(maxlen=3)
    by_name: dict[str, Tensor] = {}
    assert "keeps a tensor in 'history'" in refusal(
        lambda model, x: remembering(history, history.append)(model, x)
    )
    assert "keeps a tensor in 'memory'" in refusal(remembering(latest, latest.append))
    message = refusal(lambda m, x: by_name.setdefault("x", m(x)).mean())
    assert "keeps a tensor in 'by_name'" in message
    assert "keeps a tensor in 'LAST'" in refusal(in_a_global)
    assert (history, list(latest), by_name, LAST) == ([], [], {}, None)


# A step that computes something else in its second call is refused with the cause.
class Counting(nn.Linear):
    """Multiplies by how often it was called."""

    def __init__(self) -> None:
        super().__init__(3, 3)
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return super().forward(x) * self.count


class Hidden(nn.Linear):
    """Adds its last output, which is in no buffer."""

    def __init__(self) -> None:
        super().__init__(3, 3)
        self.memory: list[Tensor] = [torch.zeros(4, 3)]

    def forward(self, x: Tensor) -> Tensor:
        out = super().forward(x) + self.memory[0]
        self.memory[0] = out.detach()
        return out


class Scaled(nn.Linear):
    """Divides by the deviation of the first batch."""

    def __init__(self) -> None:
        super().__init__(3, 3)
        self.deviation: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.deviation is None:
            self.deviation = x.std()
        return super().forward(x / self.deviation)


def detaching(calls: dict[str, int]) -> Loss:
    """Takes a gradient the first time it is called."""

    def loss(model: Any, x: Tensor) -> Tensor:
        calls["count"] = calls.get("count", 0) + 1
        part = model(x * 2)
        return (model(x) + (part if calls["count"] == 1 else part.detach())).mean()  # type: ignore[no-any-return]

    return loss


def in_globals(model: Any, x: Tensor) -> Tensor:
    global CALLS
    CALLS += 1
    return mean(model, x * CALLS)


@pytest.mark.parametrize(
    ("layer", "loss", "place"),
    [
        (Counting(), mean, "'model.count'"),
        (Hidden(), mean, "'model.memory'"),
        (Scaled(), mean, "'model.deviation'"),
        (None, detaching({}), "'calls'"),
        (None, in_globals, "'CALLS'"),
    ],
)
def test_state_that_decides_what_is_computed_is_named_with_its_line(
    layer: nn.Module | None, loss: Loss, place: str
) -> None:
    message = refusal(loss, layer)
    assert "test_effects.py:" in message
    assert (
        f"something else here when it is called again, because of what it keeps in {place}"
        in message
    )
    assert CALLS == 0
    assert getattr(layer, "count", 0) == 0


def test_a_number_of_the_time_is_refused() -> None:
    message = refusal(lambda model, x: mean(model, x * time.perf_counter()))
    assert "because of a number that Python gives it, such as the time" in message


@pytest.mark.parametrize(
    ("loss", "module"),
    [
        (lambda model, x: mean(model, x * random.random()), "random"),
        (lambda model, x: mean(model, x * 2 if random.random() < 1e-9 else x), "random"),
        (lambda model, x: mean(model, x * np.random.rand()), "numpy.random"),  # noqa: NPY002
        (
            lambda model, x: mean(
                model,
                x + torch.from_numpy(np.random.rand(3).astype(np.float32)),  # noqa: NPY002
            ),
            "numpy.random",
        ),
    ],
)
def test_numbers_drawn_by_python_are_refused_and_not_used_up(loss: Loss, module: str) -> None:
    random.seed(1)
    expected = random.random()
    random.seed(1)
    message = refusal(loss)
    assert f"draws a number by {module}, not by torch" in message
    assert "test_effects.py:" in message
    assert random.random() == expected


@pytest.mark.parametrize(
    "draw",
    [
        lambda: random.random(),
        lambda: random.uniform(0, 1),
        lambda: np.random.rand(),  # noqa: NPY002
        lambda: np.random.random(),  # noqa: NPY002
    ],
)
def test_numbers_drawn_by_python_that_decide_nothing_are_no_reason_to_refuse(draw: Any) -> None:
    def skipping(model: Any, x: Tensor) -> Tensor:
        return mean(model, x if model.training and draw() >= 0 else -x)

    assert capture(lambda: trained(skipping)).ops


def test_a_generator_of_numpys_that_goes_on_is_refused() -> None:
    generator = np.random.default_rng(0)
    message = refusal(lambda model, x: mean(model, x * generator.random()))
    assert "because of what it keeps in 'generator'" in message
    assert generator.random() == np.random.default_rng(0).random()


def test_numbers_that_are_the_same_in_every_step_are_captured() -> None:
    def seeded(model: Any, x: Tensor) -> Tensor:
        random.seed(3)
        return mean(model, x * random.random() * np.random.default_rng(0).random())

    assert capture(lambda: trained(seeded)).ops


# A step may write over inputs and state alone.
def write_over(tensor: Callable[[], Tensor]) -> Loss:
    return lambda model, x: mean(model, x * tensor().add_(1))


class Overwriting(nn.Linear):
    """Writes over a tensor that is no buffer."""

    def __init__(self) -> None:
        super().__init__(3, 3)
        self.scale = torch.zeros(3)

    def forward(self, x: Tensor) -> Tensor:
        self.scale[0] = 1.0
        return super().forward(x * self.scale)


def test_tensors_of_others_are_not_written_over() -> None:
    scales = {"scale": torch.ones(3)}
    out = torch.ones(4, 3)
    steps: list[tuple[Loss, nn.Module | None]] = [
        (write_over(lambda: SCALE), None),
        (write_over(lambda: SHARED), None),
        (write_over(lambda: scales["scale"]), None),
        (lambda model, x: mean(model, torch.mul(x, 2.0, out=out)), None),
        (mean, Overwriting()),
    ]
    for loss, layer in steps:
        message = refusal(loss, layer)
        assert "writes over a tensor that is neither its input nor a parameter or buffer" in message
        assert "test_effects.py:" in message
    assert NUMBERS.tolist() == SCALE.tolist() == scales["scale"].tolist() == [1.0] * 3
    assert out.eq(1.0).all()


class Caching(nn.Linear):
    """Keeps a mask that it makes when it is called first, counts, and leaves its outputs about."""

    def __init__(self) -> None:
        super().__init__(3, 3)
        self.mask: Tensor | None = None
        self.count, self.outputs = 0, [torch.zeros(1)]
        self.register_buffer("period", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x: Tensor) -> Tensor:
        if self.mask is None:
            self.mask = torch.ones(4, 3).tril() * self.period
        self.count += 1
        out = super().forward(x * self.mask)
        self.outputs.append(out.detach())
        return out


def test_what_is_computed_alike_in_every_step_may_be_kept_by_the_model() -> None:
    layer = Caching()
    assert capture_program(*trained(mean, layer)).graph.ops
    assert (layer.mask, layer.count, len(layer.outputs)) == (None, 0, 1)
    assert capture(lambda: trained(mean, Caching())).ops


def test_a_buffer_that_is_cached_and_changes_is_told_from_one_that_does_not() -> None:
    class Moving(Caching):
        def forward(self, x: Tensor) -> Tensor:
            out = super().forward(x)
            self.period.mul_(0.9)
            return out

    assert "keeps in 'model.mask'" in refusal(mean, Moving())


def test_a_step_that_fails_the_second_time_is_refused() -> None:
    calls = [0]

    def loss(model: Any, x: Tensor) -> Tensor:
        calls[0] += 1
        return mean(model, x.reshape(4, 3) if calls[0] == 1 else x.reshape(5, 3))

    assert "something else here when it is called again, because of what it keeps in 'calls'" in (
        refusal(loss)
    )


def test_a_step_that_fails_leaves_objects_as_they_were() -> None:
    history: list[Tensor] = []

    def loss(model: Any, x: Tensor) -> Tensor:
        history.append(x)
        raise ValueError("no")

    assert "ValueError: no" in refusal(loss)
    assert history == []


# Tensors of the model that share memory are refused if the step writes it.
BASE = torch.zeros(4, 4)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (BASE, BASE[1]),
        (BASE, BASE.t()),
        (BASE[:3], BASE[2:]),
        (BASE[0], BASE.view(torch.int32)[0, 3:]),
        (BASE.diagonal(), BASE[3]),
    ],
)
def test_two_that_overlap_are_named_where_one_is_written(first: Tensor, second: Tensor) -> None:
    state = {"one": first, "other": second}
    check_apart(state, ())
    for name in state:
        with pytest.raises(
            SituateError, match=r"'one' and 'other' share memory, .*: make them one"
        ):
            check_apart(state, (name,))


@pytest.mark.parametrize(
    ("first", "second"),
    [(BASE, BASE), (BASE[0], BASE[1]), (BASE, torch.zeros(4)), (BASE[:0], BASE)],
)
def test_one_tensor_by_two_names_and_parts_that_do_not_overlap_are_apart(
    first: Tensor, second: Tensor
) -> None:
    check_apart({"one": first, "other": second}, ("one", "other"))


class Sharing(nn.Module):
    """Has a buffer, a part of it, and a frozen parameter that is another part."""

    base: Tensor
    part: Tensor

    def __init__(self, write: Callable[[Sharing, Tensor], object]) -> None:
        super().__init__()
        self.layer, self.write = nn.Linear(3, 3), write
        self.register_buffer("base", torch.zeros(3, 3))
        self.register_buffer("part", self.base[0])
        self.frozen = nn.Parameter(self.base.t()[0], requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.write(self, x)
        out: Tensor = self.layer(x + self.part + self.frozen).mean()
        return out


@pytest.mark.parametrize(
    "write",
    [
        lambda model, x: model.part.add_(x.mean(0)),
        lambda model, x: model.frozen.add_(x.mean(0)),
        lambda model, x: model.base[0].add_(1),
        lambda model, x: setattr(model, "part", model.part + 1),
    ],
)
def test_capture_refuses_to_write_into_common_memory(
    write: Callable[[Sharing, Tensor], object],
) -> None:
    with pytest.raises(SituateError, match=r"share memory, which the step writes: make them one"):
        capture(lambda: (Sharing(write), torch.ones(4, 3), None))


def test_common_memory_that_is_only_read_is_captured() -> None:
    assert capture(lambda: (Sharing(lambda model, x: None), torch.ones(4, 3), None)).ops


class Whole(nn.Module):
    """Takes the part in the step."""

    base: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("base", torch.zeros(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        part = self.base[0]
        part.add_(x.detach().mean(0))
        out: Tensor = self.layer(x + part + self.base.t()[0]).mean()
        return out


def test_a_part_that_the_step_takes_of_one_buffer_is_written_as_pytorch_does() -> None:
    result = compare(Whole(), torch.randn(4, 3), None, sgd, placed_step_of_whole, threads=1)
    assert result.within(0.0)
    assert result.changed == 3


def placed_step_of_whole(model: nn.Module, optimizer: Any) -> PlacedStep:
    return placed_step(model, optimizer, given=((torch.randn(4, 3),), None))
