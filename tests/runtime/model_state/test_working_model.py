"""Recipes of mixed precision equal PyTorch's own loops, to the last bit."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn, optim  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.data.slices import Slices  # noqa: E402
from situate.data.update_rule import RECIPES, update_rule  # noqa: E402
from situate.runtime.model_state.optimizers import default_optimizer  # noqa: E402
from situate.runtime.model_state.working_model import WorkingModel  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.runtime.unplaced import UnplacedStep  # noqa: E402
from tests.runtime.steps import STEPS, assert_same, state, step_of  # noqa: E402

HALVES = 2
"""Slices of the batch."""


class Network(nn.Module):
    """A matrix that 8-bit states are for, a normalisation, and one weight under two names."""

    average: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.norm = nn.Linear(64, 64), nn.LayerNorm(64)
        self.back, self.again = (nn.Linear(64, 64, bias=False) for _ in range(2))
        self.again.weight = self.back.weight
        self.register_buffer("average", torch.zeros(64))

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.gelu(self.norm(self.wide(x)))
        self.average.mul_(0.5).add_(hidden.detach().mean(0))
        out: Tensor = self.again(torch.tanh(self.back(hidden)))
        return out


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x), y)


def network() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    torch.manual_seed(0)
    return Network(), (torch.randn(8, 64), torch.randint(64, (8,)))


# PyTorch's own loops.
def with_masters(
    masters: nn.Module, inputs: tuple[Tensor, Tensor], parts: int, sum_type: torch.dtype
) -> Tensor:
    """Loss and gradients of float32 masters from passes in bfloat16."""
    work = copy.deepcopy(masters).to(torch.bfloat16)
    total = torch.zeros((), dtype=torch.bfloat16)
    sums: dict[str, Tensor] = {}
    for x, y in zip(*(tensor.chunk(parts) for tensor in inputs), strict=True):
        value = loss(work, x.bfloat16(), y) / parts
        value.backward()  # type: ignore[no-untyped-call]
        total = total + value.detach()
        for name, weight in work.named_parameters():
            assert weight.grad is not None
            gradient = weight.grad.to(sum_type)
            sums[name] = sums[name] + gradient if name in sums else gradient
            weight.grad = None
    for name, master in masters.named_parameters():
        master.grad = sums[name].float()
    masters.load_state_dict({**masters.state_dict(), "average": work.average})
    return total


def rounded(optimizer: optim.Optimizer, round_moment: Callable[[Tensor, str], Tensor]) -> None:
    """Round the float32 moments that PyTorch's AdamW keeps."""
    for moments in optimizer.state.values():
        for name in ("exp_avg", "exp_avg_sq"):
            moments[name].copy_(round_moment(moments[name], name))


def to_bfloat16(moment: Tensor, name: str) -> Tensor:
    return moment.bfloat16().float()


def to_8bit(moment: Tensor, name: str) -> Tensor:
    """The nearest of 256 numbers in each block of 256, found by comparison with all of them."""
    if moment.numel() < 4096:
        return moment
    decades = [
        (10.0 ** (decade - 6), torch.linspace(0.1, 1, 2 ** (decade + (name == "exp_avg_sq")) + 1))
        for decade in range(7)
    ]
    magnitudes = [
        magnitude
        for unit, limits in decades
        for magnitude in (unit * ((limits[:-1] + limits[1:]) / 2)).tolist()
    ]
    signed = [-m for m in magnitudes] if name == "exp_avg" else []
    # Falling, because of two equally near numbers torchao takes the larger.
    values = torch.tensor(sorted([*magnitudes, *signed, 0.0, 1.0], reverse=True))
    assert len(values) == 256
    blocks = moment.view(-1, 256)
    scale = blocks.abs().amax(1, keepdim=True).clip(1e-12)
    nearest = (blocks.unsqueeze(-1) / scale.unsqueeze(-1) - values).abs().argmin(-1)
    return (values[nearest] * scale).view(moment.shape)


Loop = Callable[[nn.Module, tuple[Tensor, Tensor], optim.Optimizer, int], Tensor]


def plain(model: nn.Module, inputs: Any, optimizer: optim.Optimizer, parts: int) -> Tensor:
    """The model's own types; PyTorch accumulates gradients."""
    total = torch.zeros((), dtype=next(model.parameters()).dtype)
    for x, y in zip(*(tensor.chunk(parts) for tensor in inputs), strict=True):
        value = loss(model, x.to(total.dtype), y) / parts
        value.backward()  # type: ignore[no-untyped-call]
        total = total + value.detach()
    optimizer.step()
    optimizer.zero_grad()
    return total


def under_autocast(model: nn.Module, inputs: Any, optimizer: optim.Optimizer, parts: int) -> Tensor:
    total = torch.zeros(())
    for x, y in zip(*(tensor.chunk(parts) for tensor in inputs), strict=True):
        with torch.autocast("cpu", torch.bfloat16):
            value = loss(model, x, y)
        (value / parts).backward()  # type: ignore[no-untyped-call]
        total = total + value.detach() / parts
    optimizer.step()
    optimizer.zero_grad()
    return total


def summed_in(sum_type: torch.dtype) -> Loop:
    def loop(model: nn.Module, inputs: Any, optimizer: optim.Optimizer, parts: int) -> Tensor:
        total = with_masters(model, inputs, parts, sum_type)
        optimizer.step()
        optimizer.zero_grad()
        return total

    return loop


def rounding(round_moment: Callable[[Tensor, str], Tensor]) -> Loop:
    def loop(model: nn.Module, inputs: Any, optimizer: optim.Optimizer, parts: int) -> Tensor:
        total = summed_in(torch.float32)(model, inputs, optimizer, parts)
        rounded(optimizer, round_moment)
        return total

    return loop


class MuonBesideAdamW:
    """PyTorch's Muon for matrices, and its AdamW for the rest, as Muon's documentation pairs
    them."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.both = (
            optim.Muon([p for p in parameters if p.ndim == 2]),
            optim.AdamW([p for p in parameters if p.ndim != 2]),
        )

    def step(self) -> None:
        for optimizer in self.both:
            optimizer.step()

    def zero_grad(self) -> None:
        for optimizer in self.both:
            optimizer.zero_grad()


CASES: list[tuple[str, Any, Loop]] = [
    ("adamw:recipe=megatron", optim.AdamW, summed_in(torch.float32)),
    ("adamw:recipe=fsdp2", optim.AdamW, summed_in(torch.float32)),
    ("adamw:recipe=deepspeed", optim.AdamW, summed_in(torch.bfloat16)),
    ("adamw:recipe=pure", optim.AdamW, plain),
    ("adamw:recipe=amp", optim.AdamW, under_autocast),
    ("momentum:recipe=megatron", lambda p: optim.SGD(p, momentum=0.9), summed_in(torch.float32)),
    ("adafactor:recipe=megatron", optim.Adafactor, summed_in(torch.float32)),
    ("adafactor", optim.Adafactor, plain),
    ("adamw-bf16:recipe=megatron", optim.AdamW, rounding(to_bfloat16)),
    ("adamw8bit:recipe=megatron", optim.AdamW, rounding(to_8bit)),
    ("muon", MuonBesideAdamW, plain),
    ("muon:recipe=megatron", MuonBesideAdamW, summed_in(torch.float32)),
    ("muon:recipe=pure", MuonBesideAdamW, plain),
]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def compare_with(text: str, make: Any, loop: Loop, parts: int, devices: int = 1) -> None:
    """Losses, parameters and buffers of placed steps equal those of a loop."""
    (model, inputs), (other, _) = network(), network()
    if "pure" in text:
        model, other = model.to(torch.bfloat16), other.to(torch.bfloat16)
    slices = Slices((1,) * parts) if parts > 1 else None
    program = capture_program(model, inputs, loss, optimizer=text, slices=slices)
    optimizer = make(list(other.parameters()))
    own = default_optimizer(update_rule(text).kind, list(model.parameters()))
    with step_of(program, model, own, devices) as step:
        for _ in range(STEPS):
            assert torch.equal(step(*inputs), loop(other, inputs, optimizer, parts))
    assert_same(state(model), state(other))


@pytest.mark.parametrize("parts", [1, HALVES])
@pytest.mark.parametrize(("text", "make", "loop"), CASES, ids=[case[0] for case in CASES])
def test_a_placed_step_equals_pytorchs_loop(text: str, make: Any, loop: Loop, parts: int) -> None:
    compare_with(text, make, loop, parts)


@pytest.mark.skipif(sys.platform != "linux", reason="starts processes")
@pytest.mark.parametrize("case", [0, 6, 9, 11])
def test_so_does_a_step_of_two_processes(case: int) -> None:
    compare_with(*CASES[case], parts=HALVES, devices=2)


def test_sums_in_float32_and_in_bfloat16_differ() -> None:
    """Without this, the loops above could be one."""
    (model, inputs), (other, _) = network(), network()
    one = summed_in(torch.float32)(model, inputs, optim.AdamW(model.parameters()), HALVES)
    two = summed_in(torch.bfloat16)(other, inputs, optim.AdamW(other.parameters()), HALVES)
    assert torch.equal(one, two)
    assert not torch.equal(model.wide.weight, other.wide.weight)


# The unplaced step of `verify`.
@pytest.mark.parametrize("parts", [1, HALVES])
@pytest.mark.parametrize("case", range(5))
def test_the_unplaced_step_is_the_same_loop(case: int, parts: int) -> None:
    text, make, loop = CASES[case]
    (model, inputs), (other, _) = network(), network()
    given = inputs
    if "pure" in text:
        model, other = model.to(torch.bfloat16), other.to(torch.bfloat16)
        given = inputs[0].bfloat16(), inputs[1]
    slices = Slices((1,) * parts) if parts > 1 else None
    reference = UnplacedStep(
        model,
        given,
        loss,
        make(list(model.parameters())),
        slices=slices,
        recipe=update_rule(text).recipe,
    )
    optimizer = make(list(other.parameters()))
    for _ in range(STEPS):
        assert torch.equal(reference()[0], loop(other, inputs, optimizer, parts))
    assert_same(state(model), state(other))


def test_a_working_model_takes_weights_and_gives_gradients() -> None:
    masters, inputs = network()
    working = WorkingModel(masters, RECIPES["megatron"])
    assert {p.dtype for p in working.model.parameters()} == {torch.bfloat16}
    with torch.no_grad():
        masters.wide.bias.fill_(1 / 3)
    working.begin()
    assert working.model.wide.bias[0] == torch.tensor(1 / 3).bfloat16()
    loss(working.model, *inputs).backward()
    working.give_gradients()
    assert masters.wide.bias.grad.dtype is torch.float32
    assert working.model.wide.bias.grad is None


def test_without_masters_the_model_works_itself() -> None:
    masters, _ = network()
    assert WorkingModel(masters, RECIPES["amp"]).model is masters
    assert WorkingModel(masters, None).model is masters
