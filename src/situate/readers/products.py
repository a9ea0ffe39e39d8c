"""FLOPs of PyTorch's matrix operators, from the shapes of their arguments.

The arguments are tensors, or a trace's descriptions of tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Protocol


class Shaped(Protocol):
    """Any value that has a shape."""

    @property
    def shape(self) -> Sequence[int]:
        """Elements along every dimension."""


def _product(a: Shaped, b: Shaped, *_: Any, **__: Any) -> int:
    return 2 * math.prod(a.shape) * b.shape[-1]


def _sum_and_product(_total: Shaped, a: Shaped, b: Shaped, *_: Any, **__: Any) -> int:
    return _product(a, b)


def _transposed_product(a: Shaped, b: Shaped, *_: Any, **__: Any) -> int:
    """The second factor has a row for every column of the result."""
    return 2 * math.prod(a.shape) * b.shape[0]


def _matrix_vector(a: Shaped, *_: Any, **__: Any) -> int:
    return 2 * math.prod(a.shape)


def _sum_and_matrix_vector(_total: Shaped, a: Shaped, *_: Any, **__: Any) -> int:
    return _matrix_vector(a)


def grouped_product(a: Shaped, b: Shaped, *_: Any, **__: Any) -> int:
    """The groups share the rows or columns of one matrix, or the summed dimension."""
    # a (groups, rows, inner) and b (inner, columns): each column belongs to one group.
    of_one = len(b.shape) == 2 < len(a.shape)
    return 2 * math.prod(a.shape[1:] if of_one else a.shape) * b.shape[-1]


def _trilinear(*arguments: Any, **_: Any) -> int:
    """Two per point of the product space of the three factors, after inserting dimensions of 1."""
    sizes: dict[int, int] = {}
    for factor, put_in in zip(arguments[:3], arguments[3:6], strict=True):
        places = (place for place in count() if place not in put_in)
        sizes |= dict(zip(places, factor.shape, strict=False))
    return 2 * math.prod(sizes.values())


def _convolution(image: Shaped, weight: Shaped, *settings: Any, out_val: Shaped, **_: Any) -> int:
    """Every element of the output, or of a transposed convolution's input, meets the weights of
    one channel."""
    # `settings`: bias, stride, padding, dilation, transposed, ...
    meets = image if settings[4] is True else out_val
    return 2 * math.prod(meets.shape) * math.prod(weight.shape[1:])


def convolution_backward(
    gradient: Shaped, image: Shaped, weight: Shaped, *settings: Any, **_: Any
) -> int:
    """The convolution's FLOPs for each requested gradient, of image and weight.

    The weights hold the channels of one group.
    """
    # `settings`: bias sizes, stride, padding, dilation, transposed, output padding, groups, mask.
    meets = image if settings[4] is True else gradient
    gradients = sum(map(bool, settings[7][:2]))
    return 2 * gradients * math.prod(meets.shape) * math.prod(weight.shape[1:])


def _rnn_layer(steps: Shaped, w_ih: Shaped, w_hh: Shaped, *_: Any, **__: Any) -> int:
    """Both matrix products of every step of every sequence."""
    return 2 * math.prod(steps.shape[:-1]) * (math.prod(w_ih.shape) + math.prod(w_hh.shape))


def _rnn_layer_backward(*arguments: Any, **_: Any) -> int:
    return 2 * _rnn_layer(*arguments)


def attention(query: Shaped, key: Shaped, value: Shaped, *_: Any, **__: Any) -> int:
    """Scores, and the sums of values: heads may share keys and values."""
    return 2 * _scores(query, key) * (query.shape[-1] + value.shape[-1])


def attention_backward(
    _gradient: Shaped, query: Shaped, key: Shaped, value: Shaped, *_: Any, **__: Any
) -> int:
    """Scores again, and two products for each of the two products of the forward pass."""
    return 2 * _scores(query, key) * (3 * query.shape[-1] + 2 * value.shape[-1])


def _scores(query: Shaped, key: Shaped) -> int:
    return math.prod(query.shape[:-1]) * key.shape[-2]


PRODUCTS: dict[str, Callable[..., int]] = {
    "mm": _product,
    "bmm": _product,
    "addmm": _sum_and_product,
    "baddbmm": _sum_and_product,
    "addbmm": _sum_and_product,
    "_addmm_activation": _sum_and_product,
    "_int_mm": _product,
    "_scaled_mm": _product,
    "_grouped_mm": grouped_product,
    "_weight_int8pack_mm": _transposed_product,
    "mv": _matrix_vector,
    "dot": _matrix_vector,
    "addmv": _sum_and_matrix_vector,
    "_trilinear": _trilinear,
    "convolution": _convolution,
    "_convolution": _convolution,
    "convolution_backward": convolution_backward,
    "mkldnn_rnn_layer": _rnn_layer,
    "mkldnn_rnn_layer_backward": _rnn_layer_backward,
    "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
}
"""Formulas by operator name in `torch.ops.aten`. Each takes the arguments in the schema's order and
the result as `out_val`, like the formulas of `torch.utils.flop_counter`."""
