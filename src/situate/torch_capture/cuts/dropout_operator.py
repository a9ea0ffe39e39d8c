"""An operator for a part of a dropout: it draws the numbers of the whole, and keeps its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


@torch.library.custom_op(
    "situate::dropout_part",
    mutates_args=(),
    schema="(Tensor x, float p, int[] sizes, int[] strides, int[] place) -> (Tensor, Tensor)",
    tags=(torch.Tag.nondeterministic_seeded,),
)
def dropout_part(
    x: Tensor, p: float, sizes: Sequence[int], strides: Sequence[int], place: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """A part of a dropout in training, and the mask of the numbers that it keeps.

    Args:
        x: the part of the input.
        p: the probability of a zero, between 0 and 1.
        sizes, strides: of the mask of the whole.
        place: of the part: a dimension, its number of ranges, and the begin and the end within
            each range.
    """
    dim, outer, begin, end = place
    # Drawn whole and in the order of its memory, so that parts drop what the whole op drops.
    mask = torch.empty_strided(sizes, strides, dtype=torch.bool, device=x.device)
    split = [*sizes[:dim], outer, sizes[dim] // outer, *sizes[dim + 1 :]]
    ranges = mask.bernoulli_(1 - p).view(split)
    own = ranges.narrow(dim + 1, begin, end - begin).flatten(dim, dim + 1).contiguous()
    # As eager PyTorch rounds: by noise of the input's dtype.
    noise = own * x.new_ones(()).div_(1 - p)
    return torch.mul(x, noise, out=torch.empty_like(x)), own


@dropout_part.register_fake
def _(
    x: Tensor, p: float, sizes: Sequence[int], strides: Sequence[int], place: Sequence[int]
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty(x.shape, dtype=torch.bool, device=x.device)
