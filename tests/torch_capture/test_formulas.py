"""FLOPs of operators, against figures worked out by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from situate.torch_capture import capture, cost


def empty(*shape, dtype=None):
    return torch.empty(shape, dtype=dtype, device="meta")


def flops(packet, *args, value, **kwargs):
    return cost.flops(packet, args, kwargs, value)


def convolution_backward(out, image, weight, transposed, groups, asked):
    """FLOPs of the gradients of image and weight, those that are `asked` for."""
    sides = len(image) - 2
    wanted = zip(asked, (image, weight), strict=True)
    return flops(
        torch.ops.aten.convolution_backward,
        *(empty(*out), empty(*image), empty(*weight), None),
        *([1] * sides, [0] * sides, [1] * sides, transposed, [0] * sides, groups),
        [*asked, False],
        value=(*(empty(*shape) if want else None for want, shape in wanted), None),
    )


class TestConvolutionBackward:
    """Each of two gradients takes what the convolution took: two FLOPs for every element of its
    output and weight of one channel."""

    @pytest.mark.parametrize("asked", [(True, True), (False, True), (True, False)])
    @pytest.mark.parametrize("groups", [1, 4, 64])
    def test_of_groups(self, groups, asked):
        weight = (64, 64 // groups, 3, 3)
        once = 2 * (2 * 64 * 8 * 8) * (64 // groups * 3 * 3)
        found = convolution_backward((2, 64, 8, 8), (2, 64, 10, 10), weight, False, groups, asked)
        assert found == once * sum(asked)

    @pytest.mark.parametrize("groups", [1, 4])
    def test_of_a_transposed_one_every_element_of_its_input_counts(self, groups):
        weight = (64, 32 // groups, 3, 3)
        once = 2 * (2 * 64 * 8 * 8) * (32 // groups * 3 * 3)
        both = (True, True)
        found = convolution_backward((2, 32, 10, 10), (2, 64, 8, 8), weight, True, groups, both)
        assert found == 2 * once

    def test_of_one_dimension_with_unequal_channels(self):
        found = convolution_backward((2, 16, 16), (2, 8, 20), (16, 8, 5), False, 1, (True, True))
        assert found == 2 * 2 * (2 * 16 * 16) * (8 * 5)


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
        found = flops(torch.ops.aten._grouped_mm, empty(*a), empty(*b), value=empty(*out))
        assert found == self.once

    def test_so_it_does_in_the_gradient_of_the_weights(self):
        """Whose 128 tokens the experts share, though each has a product of its own."""
        given = empty(64, 128), empty(128, 32)
        assert flops(torch.ops.aten._grouped_mm, *given, value=empty(4, 64, 32)) == self.once


class TestOtherProducts:
    def test_of_integers(self):
        given = (empty(5, 64, dtype=torch.int8), empty(64, 32, dtype=torch.int8))
        out = empty(5, 32, dtype=torch.int32)
        assert flops(torch.ops.aten._int_mm, *given, value=out) == 2 * 5 * 64 * 32

    def test_with_weights_of_eight_bits(self):
        weight = empty(32, 64, dtype=torch.int8)
        given = empty(5, 64), weight, empty(32)
        found = flops(torch.ops.aten._weight_int8pack_mm, *given, value=empty(5, 32))
        assert found == 2 * 5 * 64 * 32

    def test_that_are_added_up(self):
        given = empty(8, 16), empty(4, 8, 32), empty(4, 32, 16)
        found = flops(torch.ops.aten.addbmm, *given, value=empty(8, 16), beta=1, alpha=1)
        assert found == 2 * 4 * 8 * 32 * 16

    def test_of_three(self):
        """`torch.nn.Bilinear` of 5 and 6 features to 7, for 3 rows."""
        given = empty(3, 5), empty(7, 5, 6), empty(3, 6)
        places = [1, 3], [0], [1, 2], [2, 3]
        found = flops(torch.ops.aten._trilinear, *given, *places, value=empty(3, 7))
        assert found == 2 * 3 * 7 * 5 * 6


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
            found = sum(op.flops for op in products if op.phase == phase)
            assert found == times * 2 * (2 * 64) * 64 * (2 * 32 + 32)
