"""The values of a step's constants at the size of a slice, and at the size of the batch."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from situate.torch_capture.names import state_name
from situate.torch_capture.nodes import operator_name
from situate.torch_capture.slices.dependence.operator_call import MAX_POWER, RELATIVE_ROUNDING
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    UNKNOWN,
    ZERO,
    Relation,
    by_sample,
)

if TYPE_CHECKING:
    import torch
    from torch import fx

MAX_BLOCKS = 4
"""The most consecutive blocks of samples that a constant is tested for."""

MAX_NUMBERS = 2**20
"""The most numbers of a tensor whose values are computed."""


def constant_values(nodes: Sequence[fx.Node], constants: Mapping[str, Any]) -> dict[fx.Node, Any]:
    """By node, the values that are computed from numbers and known constants alone."""
    import torch
    from torch.utils._mode_utils import no_dispatch

    values: dict[fx.Node, Any] = {}
    # The capture's fake mode may still be active, and would return fake results.
    with no_dispatch(), torch.no_grad():
        for node in nodes:
            value = _held_value(constants.get(state_name(node)))
            if value is not None:
                values[node] = value
            elif node.op == "call_function" and _is_computable(node, values):
                with contextlib.suppress(Exception):  # no values: the op is UNPROVED if used
                    values[node] = _computed(node, values)
    return values


def _held_value(value: Any) -> Any:
    """The real tensor behind a constant; None if it has no values."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    if isinstance(value, FakeTensor):
        return value.constant
    is_known = isinstance(value, torch.Tensor) and value.device.type == "cpu"
    return value if is_known and value.numel() <= MAX_NUMBERS else None


def _is_computable(node: fx.Node, values: Mapping[fx.Node, Any]) -> bool:
    import torch

    tags: Any = getattr(node.target, "tags", ())
    is_empty = operator_name(node).startswith(("empty", "new_empty"))
    if torch.Tag.nondeterministic_seeded in tags or is_empty:
        return False
    sizes = (getattr(v, "numel", int)() for v in _listed(node.meta.get("val")))
    few = all(size <= MAX_NUMBERS for size in sizes)
    return few and all(source in values for source in node.all_input_nodes)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _computed(node: fx.Node, values: Mapping[fx.Node, Any]) -> Any:
    import torch
    from torch import fx

    arguments = fx.map_arg((node.args, node.kwargs), values.__getitem__)
    args, kwargs = arguments
    if "device" in kwargs:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    kwargs = {key: value for key, value in kwargs.items() if key != "pin_memory"}
    target: Any = node.target
    return target(*args, **kwargs)


@dataclass(frozen=True)
class Cutting:
    """The positions of the slices of one size in the batch.

    Attributes:
        samples: of each of these slices.
        total: samples of the batch.
        starts: the number of samples before each of these slices.
    """

    samples: int
    total: int
    starts: tuple[int, ...]

    @property
    def ratio(self) -> Fraction:
        """Samples of the batch over those of a slice."""
        return Fraction(self.total, self.samples)


def constant_relation(ours: torch.Tensor, theirs: torch.Tensor, cutting: Cutting) -> Relation:
    """The relation of a constant that is `ours` in a slice and `theirs` in the whole batch."""
    import torch

    if ours.shape == theirs.shape:
        power = _power(theirs, ours, cutting.ratio)
        if power is None:
            return UNKNOWN
        return SHARED.with_power(power) if torch.any(ours) else ZERO
    axes = [i for i, (a, b) in enumerate(zip(ours.shape, theirs.shape, strict=False)) if a != b]
    if ours.dim() != theirs.dim() or len(axes) != 1:
        return UNKNOWN
    axis = axes[0]
    if ours.shape[axis] * cutting.ratio != theirs.shape[axis]:
        return UNKNOWN
    entries = Fraction(ours.shape[axis], cutting.samples)
    # The first entry of each slice along the axis, if slices begin at whole entries.
    starts = [start * entries for start in cutting.starts]
    if any(start.denominator != 1 for start in starts):
        return UNKNOWN
    begin = theirs.narrow(axis, 0, ours.shape[axis])
    scale = _step_of_integers(theirs, axis, int(entries)) if entries.denominator == 1 else 0
    if scale and torch.equal(ours, begin):
        return Relation("places", axis=axis, scale=scale)
    # The fewest blocks that fit come first.
    for blocks in range(1, MAX_BLOCKS + 1):
        relation = _in_blocks(ours, theirs, axis, starts, blocks, cutting)
        if relation.kind != "unknown":
            return relation
    return UNKNOWN


def _in_blocks(
    ours: torch.Tensor,
    theirs: torch.Tensor,
    axis: int,
    starts: Sequence[Fraction],
    blocks: int,
    cutting: Cutting,
) -> Relation:
    """The relation of a constant that consists of equal blocks with all samples each, such as the
    labels of real samples before those of generated ones."""
    own, rest = divmod(ours.shape[axis], blocks)
    begins = [start / blocks for start in starts]
    if rest or theirs.shape[axis] % blocks or any(begin.denominator != 1 for begin in begins):
        return UNKNOWN
    relations = []
    for part, whole in zip(ours.chunk(blocks, axis), theirs.chunk(blocks, axis), strict=True):
        parts = [whole.narrow(axis, int(begin), own) for begin in begins]
        relations.append(_along(part, parts, axis, cutting))
    if blocks == 1:
        return relations[0]
    powers = {relation.power for relation in relations} - {None}
    if any(relation.kind != "by_sample" for relation in relations) or len(powers) > 1:
        return UNKNOWN
    return by_sample(axis, next(iter(powers), None), blocks)


def _step_of_integers(whole: torch.Tensor, axis: int, entries: int) -> int:
    """The difference between the integers of a sample and those of the next; 0 if differences
    vary."""
    import torch

    if whole.is_floating_point() or whole.dtype == torch.bool:
        return 0
    rows = whole.movedim(axis, 0)
    steps = torch.unique(rows[entries:] - rows[:-entries])
    # The integers of the first sample lie in its own range, so none names another sample.
    own = bool(((rows[:entries] >= 0) & (rows[:entries] < max(int(steps[0]), 1))).all())
    return int(steps[0]) if len(steps) == 1 and own else 0


def _along(
    ours: torch.Tensor, parts: Sequence[torch.Tensor], axis: int, cutting: Cutting
) -> Relation:
    """The relation of a constant whose parts in the batch are these."""
    import torch

    powers = {_power(part, ours, cutting.ratio) for part in parts}
    if len(powers) == 1 and (power := powers.pop()) is not None:
        first = ours.narrow(axis, 0, 1).expand_as(ours)
        uniform = bool(torch.equal(first, ours))
        zero = not torch.any(ours)
        return by_sample(axis, None if zero else power, uniform=uniform)
    if ours.is_floating_point() or ours.dtype == torch.bool:
        return UNKNOWN
    scales = set()
    for part, start in zip(parts, cutting.starts, strict=True):
        offsets = torch.unique(part - ours)
        if len(offsets) != 1 or (start == 0) != (int(offsets) == 0):
            return UNKNOWN
        if start:
            scales.add(Fraction(int(offsets), start))
    # W = v_s + scale m_s must hold with one scale for all slices.
    if len(scales) != 1 or (scale := scales.pop()).denominator != 1:
        return UNKNOWN
    # A place below zero, or behind those of the slice, is that of another sample in the batch.
    own = bool(((ours >= 0) & (ours < int(scale) * cutting.samples)).all())
    return Relation("places", axis=axis, scale=int(scale)) if own else UNKNOWN


def _power(whole: torch.Tensor, part: torch.Tensor, ratio: Fraction) -> int | None:
    """The power p with whole = r^p part; None if there is none."""
    import torch

    if torch.equal(whole, part):
        return 0
    if not (whole.is_floating_point() or part.numel() == 1):
        return None
    one, other = whole.double(), part.double()
    for power in (p for p in range(-MAX_POWER, MAX_POWER + 1) if p):
        # r = 1 / ratio, so r^p = ratio^-p.
        if torch.allclose(one, other * float(ratio) ** -power, RELATIVE_ROUNDING, 0.0):
            return power
    return None
