"""A model that is captured without values, in a small form that has some."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from situate.torch_capture.build import Built

if TYPE_CHECKING:
    import torch

KEPT = 2
"""The number of layers that are kept of equal ones in a row."""

MAX_BYTES = 1 << 29
"""Bytes of parameters and buffers."""


@contextlib.contextmanager
def few_layers(model: torch.nn.Module) -> Iterator[None]:
    """A block in which the model has two of the layers that it repeats in a list."""
    import torch

    lists = [
        m for m in model.modules() if isinstance(m, (torch.nn.ModuleList, torch.nn.Sequential))
    ]
    before = [(each, dict(each._modules)) for each in lists]
    try:
        for each in lists:
            layers = list(each._modules.values())
            kept = [k for _, run in _runs(layers) for k in run[:KEPT]]
            each._modules.clear()
            each._modules.update({str(i): layers[k] for i, k in enumerate(kept)})
        yield
    finally:
        for each, layers_before in before:
            each._modules.clear()
            each._modules.update(layers_before)


def _runs(layers: list[Any]) -> Iterator[tuple[object, list[int]]]:
    """The numbers of layers that are alike, run by run."""
    for outline, run in itertools.groupby(range(len(layers)), lambda k: _outline(layers[k])):
        yield outline, list(run)


def _outline(layer: torch.nn.Module | None) -> object:
    """The types of modules and the shapes of parameters, in which equal layers agree."""
    if layer is None:
        return None
    shapes = tuple((name, tuple(p.shape)) for name, p in layer.named_parameters())
    return str(layer), shapes


def model_bytes(model: torch.nn.Module) -> int:
    """Bytes of parameters and buffers."""
    state = itertools.chain(model.parameters(), model.buffers())
    return sum(tensor.numel() * tensor.element_size() for tensor in state)


def real(what: Built) -> torch.nn.Module:
    """A copy of a model on fake tensors with numbers in their place: those of the model that it is
    a copy of, if there is one; else random ones."""
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._pytree import tree_leaves

    memo: dict[int, Any] = {}
    for module in what.model.modules():
        stores = (module._parameters, module._buffers, vars(module))
        for leaf in (leaf for store in stores for leaf in tree_leaves(list(store.values()))):
            if isinstance(leaf, FakeTensor) and id(leaf) not in memo:
                memo[id(leaf)] = _number(leaf, what.originals.get(id(leaf)), len(memo))
    return copy.deepcopy(what.model, memo)


def _number(fake: Any, original: torch.Tensor | None, seed: int) -> torch.Tensor:
    import torch

    if original is None:
        original = fake.constant
    values = _drawn(fake, seed) if original is None else original.detach().clone()
    if isinstance(fake, torch.nn.Parameter):
        return torch.nn.Parameter(values, requires_grad=fake.requires_grad)
    return values.requires_grad_(fake.requires_grad)


def _drawn(fake: torch.Tensor, seed: int) -> torch.Tensor:
    """Matrices of the size that keeps what they multiply, vectors near one, integers of zero."""
    import torch

    shape = tuple(fake.shape)
    if not fake.is_floating_point():
        return torch.zeros(shape, dtype=fake.dtype)
    generator = torch.Generator().manual_seed(seed)
    if len(shape) < 2:
        return torch.rand(shape, generator=generator).add_(0.5).to(fake.dtype)
    fan_in = max(fake.numel() // max(shape[0], 1), 1)
    # Numbers between -1 and 1 have a variance of a third.
    numbers = torch.rand(shape, generator=generator).mul_(2).sub_(1)
    return numbers.mul_((3 / fan_in) ** 0.5).to(fake.dtype)
