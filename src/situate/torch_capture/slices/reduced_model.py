"""A small form, with values, of a model that is captured without any."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situate.torch_capture.build import FakeStep

if TYPE_CHECKING:
    import torch

MAX_NUMBERS = 250_000_000
"""The most numbers of parameters and buffers in a small form."""

TABLE, SHORT_TABLE = 8192, 1024
"""Rows from which an embedding is long, and rows that remain of a long one."""


@dataclass(frozen=True)
class SmallForm:
    """The sizes of a model that runs in little memory.

    Attributes:
        layers: the number of layers that remain of equal ones in a row.
        tables: row counts of long embeddings. Each dimension of such a size, also in an output
            layer, keeps `SHORT_TABLE` entries.
    """

    layers: int
    tables: frozenset[int] = frozenset()

    def part(self, tensor: torch.Tensor) -> torch.Tensor:
        """The first entries of a tensor along each shortened dimension: a view."""
        for axis, size in enumerate(tensor.shape):
            if size in self.tables:
                tensor = tensor.narrow(axis, 0, SHORT_TABLE)
        return tensor

    def indices(self, values: torch.Tensor) -> torch.Tensor:
        """Integers, none of which exceeds a short table; negative ones are unchanged."""
        import torch

        if not self.tables or values.dtype == torch.bool:
            return values
        return torch.where(values < SHORT_TABLE, values, values % SHORT_TABLE)

    def numbers(self, model: torch.nn.Module) -> int:
        """Numbers of the remaining parameters and buffers."""
        with few_layers(model, self.layers):
            return sum(math.prod(self.part(tensor).shape) for tensor in _state(model))


def small_forms(model: torch.nn.Module) -> list[SmallForm]:
    """The small enough forms of a model, in the order of trials.

    A model whose code contains the length of a table does not run with a short one.
    """
    tables = _long_tables(model)
    forms = [SmallForm(2, tables), SmallForm(2), SmallForm(1, tables)]
    return [form for form in dict.fromkeys(forms) if form.numbers(model) <= MAX_NUMBERS]


def numbers(model: torch.nn.Module) -> int:
    """Numbers of all parameters and buffers."""
    return sum(math.prod(tensor.shape) for tensor in _state(model))


def _state(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    return itertools.chain(model.parameters(), model.buffers())


def _long_tables(model: torch.nn.Module) -> frozenset[int]:
    import torch

    tables = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    return frozenset(m.weight.shape[0] for m in tables if m.weight.shape[0] >= TABLE)


@contextlib.contextmanager
def few_layers(model: torch.nn.Module, count: int) -> Iterator[None]:
    """A block in which the model has `count` of the layers that it repeats in a list."""
    import torch

    lists = [
        m for m in model.modules() if isinstance(m, (torch.nn.ModuleList, torch.nn.Sequential))
    ]
    # The model itself is shortened and restored, because a copy would need its memory.
    before = [(layer_list, dict(layer_list._modules)) for layer_list in lists]
    try:
        for layer_list in lists:
            layers = list(layer_list._modules.values())
            first = [k for _, run in _runs(layers) for k in run[:count]]
            layer_list._modules.clear()
            layer_list._modules.update({str(i): layers[k] for i, k in enumerate(first)})
        yield
    finally:
        for layer_list, layers_before in before:
            layer_list._modules.clear()
            layer_list._modules.update(layers_before)


def _runs(layers: list[Any]) -> Iterator[tuple[object, list[int]]]:
    """The numbers of equal layers, run by run."""
    for outline, run in itertools.groupby(range(len(layers)), lambda k: _outline(layers[k])):
        yield outline, list(run)


def _outline(layer: torch.nn.Module | None) -> object:
    """The types of modules and the shapes of parameters, in which equal layers agree."""
    if layer is None:
        return None
    shapes = tuple((name, tuple(p.shape)) for name, p in layer.named_parameters())
    return str(layer), shapes


def real(fake: FakeStep, form: SmallForm) -> torch.nn.Module:
    """A copy of a model on fake tensors with real numbers: those of its original, if there is one,
    otherwise random ones."""
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._pytree import tree_leaves

    # `deepcopy` takes the copies in its memo as they are, and copies all else.
    memo: dict[int, Any] = {}
    for module in fake.model.modules():
        stores = (module._parameters, module._buffers, vars(module))
        for leaf in (leaf for store in stores for leaf in tree_leaves(list(store.values()))):
            if isinstance(leaf, FakeTensor) and id(leaf) not in memo:
                original = fake.originals.get(id(leaf))
                memo[id(leaf)] = _number(leaf, original, form, len(memo))
    return copy.deepcopy(fake.model, memo)


def _number(fake: Any, original: torch.Tensor | None, form: SmallForm, seed: int) -> torch.Tensor:
    import torch

    if original is None:
        original = fake.constant
    if original is None:
        values = _random_values(form.part(fake), seed)
    else:
        values = form.part(original.detach()).clone()
    if isinstance(fake, torch.nn.Parameter):
        return torch.nn.Parameter(values, requires_grad=fake.requires_grad)
    return values.requires_grad_(fake.requires_grad)


def _random_values(fake: torch.Tensor, seed: int) -> torch.Tensor:
    """Random values: matrices that keep the scale of their input, vectors near one, integers of
    zero."""
    import torch

    shape = tuple(fake.shape)
    if not fake.is_floating_point():
        return torch.zeros(shape, dtype=fake.dtype)
    generator = torch.Generator().manual_seed(seed)
    low, high = 0.5, 1.5
    if len(shape) >= 2:
        # Numbers between -1 and 1 have a variance of a third.
        fan_in = max(math.prod(shape) // max(shape[0], 1), 1)
        low, high = -((3 / fan_in) ** 0.5), (3 / fan_in) ** 0.5
    return torch.empty(shape).uniform_(low, high, generator=generator).to(fake.dtype)
