"""FLOPs and traffic of captured ops, and warnings about operators without a FLOP formula."""

from __future__ import annotations

from typing import Any

import pytest

from situate.torch_capture import capture, cost

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.utils import flop_counter  # noqa: E402

from situate.data.graph import Graph  # noqa: E402

# Ops read only the parts of their inputs that they need.
TABLE = torch.empty(50_000, 64, device="meta")
"""Rows of 256 bytes."""

INDICES = torch.empty(100, dtype=torch.int64, device="meta")


def empty(*shape):
    return torch.empty(shape, device="meta")


@pytest.mark.parametrize("kind", ["aten.embedding", "aten.index", "aten._unsafe_index"])
def test_what_takes_rows_reads_no_more_than_it_takes(kind):
    assert cost.traffic(kind, [TABLE, INDICES], empty(100, 64)) == 2 * 25_600 + 800


def test_what_takes_numbers_reads_no_more_than_it_takes():
    assert cost.traffic("aten.take", [TABLE, INDICES], empty(100)) == 2 * 400 + 800


def test_a_loss_reads_one_class_a_pixel():
    scores, classes = empty(2, 150, 64, 64), torch.empty(2, 64, 64, dtype=torch.int64)
    outputs = (empty(2, 64, 64), empty())
    expected = 2 * (4 * 8192 + 4) + 8 * 8192
    assert cost.traffic("aten.nll_loss2d_forward", [scores, classes], outputs) == expected


class TestBags:
    """Each of ten bags holds ten of the table's rows, and is their sum."""

    offsets = torch.empty(10, dtype=torch.int64, device="meta")

    @pytest.mark.parametrize("kind", ["_embedding_bag", "_embedding_bag_forward_only"])
    def test_their_rows_are_read_and_no_more(self, kind):
        inputs = [TABLE, INDICES, self.offsets]
        assert cost.traffic(f"aten.{kind}", inputs, empty(10, 64)) == 25_600 + 800 + 80 + 2_560

    def test_of_a_small_table_at_most_all_is_read(self):
        inputs = [TABLE[:50], INDICES, self.offsets]
        assert cost.traffic("aten._embedding_bag", inputs, empty(10, 64)) == 12_800 + 880 + 2_560


def of(*dtypes: torch.dtype) -> list[object]:
    return [torch.empty(16, 16, dtype=dtype, device="meta") for dtype in dtypes]


BYTES, HALF, SINGLE = torch.int8, torch.bfloat16, torch.float32


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "dtype"),
    [
        ("aten.mm", (HALF, HALF), SINGLE, "bfloat16"),
        ("aten.addmm", (SINGLE, HALF, HALF), SINGLE, "bfloat16"),
        ("aten._scaled_mm", (torch.float8_e4m3fn, torch.float8_e5m2), HALF, "float8_e4m3fn"),
        ("aten._int_mm", (BYTES, BYTES), torch.int32, "int8"),
        ("mine.product", (torch.int64, torch.uint8, BYTES, SINGLE), SINGLE, "uint8"),
        ("aten._weight_int8pack_mm", (HALF, BYTES, HALF), HALF, "bfloat16"),
        ("aten.mm", (torch.int64, torch.int64), torch.int64, "int64"),
    ],
)
def test_the_dtype_of_a_product_is_that_of_what_is_multiplied(kind, inputs, output, dtype):
    assert cost.product_dtype(kind, of(*inputs), *of(output)) == dtype


def formula_empty(*shape, dtype=None):
    return torch.empty(shape, dtype=dtype, device="meta")


def flops(packet, *args, value, **kwargs):
    return cost.flops(packet, args, kwargs, value)


def convolution_backward(out, image, weight, transposed, groups, mask):
    """FLOPs of the gradients of image and weight, those that are `asked` for."""
    sides = len(image) - 2
    shapes = zip(mask, (image, weight), strict=True)
    return flops(
        torch.ops.aten.convolution_backward,
        *(formula_empty(*out), formula_empty(*image), formula_empty(*weight), None),
        *([1] * sides, [0] * sides, [1] * sides, transposed, [0] * sides, groups),
        [*mask, False],
        value=(*(formula_empty(*shape) if want else None for want, shape in shapes), None),
    )


# FLOP formulas that differ from PyTorch's.
class TestConvolutionBackward:
    """Each of two gradients takes as long as the convolution: two FLOPs per element of its output
    and weight of one channel."""

    @pytest.mark.parametrize("mask", [(True, True), (False, True), (True, False)])
    @pytest.mark.parametrize("groups", [1, 4, 64])
    def test_of_groups(self, groups, mask):
        weight = (64, 64 // groups, 3, 3)
        once = 2 * (2 * 64 * 8 * 8) * (64 // groups * 3 * 3)
        count = convolution_backward((2, 64, 8, 8), (2, 64, 10, 10), weight, False, groups, mask)
        assert count == once * sum(mask)

    @pytest.mark.parametrize("groups", [1, 4])
    def test_of_a_transposed_one_every_element_of_its_input_counts(self, groups):
        weight = (64, 32 // groups, 3, 3)
        once = 2 * (2 * 64 * 8 * 8) * (32 // groups * 3 * 3)
        both = (True, True)
        count = convolution_backward((2, 32, 10, 10), (2, 64, 8, 8), weight, True, groups, both)
        assert count == 2 * once

    def test_of_one_dimension_with_unequal_channels(self):
        count = convolution_backward((2, 16, 16), (2, 8, 20), (16, 8, 5), False, 1, (True, True))
        assert count == 2 * 2 * (2 * 16 * 16) * (8 * 5)


class TestGroupedProduct:
    """128 tokens of width 64 go to 4 experts of width 32: every token meets one expert."""

    once = 2 * 128 * 64 * 32

    @pytest.mark.parametrize(
        ("a", "b", "out"),
        [
            ((128, 64), (4, 64, 32), (128, 32)),
            ((4, 32, 64), (64, 128), (32, 128)),
            ((4, 32, 64), (4, 64, 32), (4, 32, 32)),
        ],
    )
    def test_every_token_meets_one_expert(self, a, b, out):
        count = flops(
            torch.ops.aten._grouped_mm,
            formula_empty(*a),
            formula_empty(*b),
            value=formula_empty(*out),
        )
        assert count == self.once

    def test_so_it_does_in_the_gradient_of_the_weights(self):
        """Whose 128 tokens the experts share, though each has a product of its own."""
        inputs = formula_empty(64, 128), formula_empty(128, 32)
        assert (
            flops(torch.ops.aten._grouped_mm, *inputs, value=formula_empty(4, 64, 32)) == self.once
        )


class TestOtherProducts:
    def test_of_integers(self):
        inputs = (formula_empty(5, 64, dtype=torch.int8), formula_empty(64, 32, dtype=torch.int8))
        out = formula_empty(5, 32, dtype=torch.int32)
        assert flops(torch.ops.aten._int_mm, *inputs, value=out) == 2 * 5 * 64 * 32

    def test_with_weights_of_eight_bits(self):
        weight = formula_empty(32, 64, dtype=torch.int8)
        inputs = formula_empty(5, 64), weight, formula_empty(32)
        count = flops(torch.ops.aten._weight_int8pack_mm, *inputs, value=formula_empty(5, 32))
        assert count == 2 * 5 * 64 * 32

    def test_that_are_added_up(self):
        inputs = formula_empty(8, 16), formula_empty(4, 8, 32), formula_empty(4, 32, 16)
        count = flops(torch.ops.aten.addbmm, *inputs, value=formula_empty(8, 16), beta=1, alpha=1)
        assert count == 2 * 4 * 8 * 32 * 16

    def test_of_three(self):
        """`torch.nn.Bilinear` of 5 and 6 features to 7, for 3 rows."""
        inputs = formula_empty(3, 5), formula_empty(7, 5, 6), formula_empty(3, 6)
        places = [1, 3], [0], [1, 2], [2, 3]
        count = flops(torch.ops.aten._trilinear, *inputs, *places, value=formula_empty(3, 7))
        assert count == 2 * 3 * 7 * 5 * 6


def test_experts_of_transformers_count_in_any_dtype():
    """64 tokens go to 2 of 8 experts each, which multiply them by two matrices each."""
    transformers = pytest.importorskip("transformers")
    config = transformers.MixtralConfig(
        hidden_size=64,
        intermediate_size=32,
        num_hidden_layers=1,
        vocab_size=10,
        num_attention_heads=2,
        num_key_value_heads=2,
    )

    def build(dtype):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
        tokens = torch.zeros(1, 64, dtype=torch.int64)
        return model, (tokens,), lambda m, x: m(x, use_cache=False).logits.float().mean()

    for dtype in (torch.float32, torch.bfloat16):
        ops = capture(lambda dtype=dtype: build(dtype), name="m").ops
        products = [op for op in ops if "grouped_mm" in op.kind]
        for phase, times in (("forward", 1), ("backward", 2)):
            count = sum(op.flops for op in products if op.phase == phase)
            assert count == times * 2 * (2 * 64) * 64 * (2 * 32 + 32)


X = torch.ones(4, 8)


@torch.library.custom_op("situate_brought::gate", mutates_args=())
def gate(x: Tensor, weight: Tensor) -> Tensor:
    """A product."""
    return x @ weight


@gate.register_fake
def _gate(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(len(x), weight.shape[1])


@torch.library.custom_op("situate_brought::double_", mutates_args={"x"})
def double_(x: Tensor) -> None:
    """Writes over its input."""
    x.mul_(2)


# Operators without a known cost are named in a warning.
class Gated(nn.Module):
    """Calls both operators, the first of them twice."""

    def __init__(self, overwrites: bool = False) -> None:
        super().__init__()
        self.weight, self.overwrites = nn.Parameter(torch.ones(8, 8)), overwrites

    def forward(self, x: Tensor) -> Tensor:
        y = gate(gate(x, self.weight), self.weight)
        if self.overwrites:
            double_(y)
        return y


def captured(model: nn.Module) -> Graph:
    return capture(lambda: (model, X, None), training=False)


def test_operators_whose_flops_are_not_known_are_named_once() -> None:
    assert captured(Gated()).warnings == (
        "counted as memory traffic only: situate_brought::gate; register FLOPs by "
        "torch.utils.flop_counter.register_flop_formula, or measure (situate profile)",
    )


def test_flops_that_were_registered_count(monkeypatch: pytest.MonkeyPatch) -> None:
    packet = torch.ops.situate_brought.gate

    def flops(x: Any, weight: Any, *_: Any, **__: Any) -> int:
        return int(2 * x[0] * x[1] * weight[1])

    assert captured(Gated()).warnings
    monkeypatch.setattr(flop_counter, "flop_registry", {**flop_counter.flop_registry})
    flop_counter.register_flop_formula(packet)(flops)
    graph = captured(Gated())
    assert graph.warnings == ()
    assert [op.flops for op in graph.ops if op.flops] == [2 * 4 * 8 * 8] * 2


def test_operators_that_write_over_their_inputs_are_named_too() -> None:
    assert captured(Gated(overwrites=True)).warnings[1] == (
        "counted as memory traffic only, and run by no plan, because inputs are written over: "
        "situate_brought::double_; return new tensors instead"
    )


def test_pytorchs_own_operators_are_known() -> None:
    assert captured(nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Softmax(-1))).warnings == ()
