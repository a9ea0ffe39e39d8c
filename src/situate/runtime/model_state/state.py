"""The state of a model and all else that devices share, in one block of memory.

The state is parameters, buffers and optimiser state. A copy of the changing part allows a failed
step to be undone. A device with memory of its own works on a mirror of the state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from situate.runtime.memory import Layout, Place, extent
from situate.runtime.programs.placed import PlacedProgram
from situate.torch_capture.updates.optimizer_state import state_tensors

if TYPE_CHECKING:
    import torch

    from situate.torch_capture.cuts.state import StatePart

NO_PARTS: Mapping[int, tuple[int, StatePart]] = {}
"""No parts of parameters."""


@dataclass(frozen=True)
class EntryPlaces:
    """Places of a tensor of the model and its optimiser state.

    Attributes:
        parts: the tensor and its moments, by name.
        copies: of the parts; none if no step changes them.
        count: number of its updates.
        count_copy: copy of the count.
        mark: the last step that began to copy, and the number of rows it has copied, see `rows`.
    """

    parts: dict[str, Place]
    copies: tuple[Place, ...]
    count: Place
    count_copy: Place
    mark: Place


def lay_out(
    layout: Layout,
    tensors: Sequence[torch.Tensor],
    updated: Mapping[int, str],
    changed: frozenset[int],
    wholes: Mapping[int, tuple[int, StatePart]] = NO_PARTS,
) -> list[EntryPlaces]:
    """Places for the state of a step.

    Args:
        tensors: of the model, by number.
        updated: by number of an updated parameter, the kind of its optimiser.
        changed: numbers of the tensors that a failed step must undo.
        wholes: by number of a part of a parameter, the number of the parameter, in whose memory it
            lies, and its place there.
    """
    import torch

    kinds = {whole: updated[k] for k, (whole, _) in wholes.items() if k in updated} | dict(updated)
    own = {
        k: _lay_out_one(layout, tensor, kinds.get(k))
        for k, tensor in enumerate(tensors)
        if k not in wholes
    }
    entries = []
    for number, tensor in enumerate(tensors):
        if number in wholes:
            whole, part = wholes[number]
            places = own[whole] if number in kinds else {"value": own[whole]["value"]}
            parts = {name: place.of_part(part) for name, place in places.items()}
        else:
            parts = own[number]
        copied = _lay_out_one(layout, tensor, kinds.get(number)) if number in changed else {}
        copies = tuple(copied.values())
        count, count_copy = (layout.place((), (), torch.float32) for _ in range(2))
        mark = layout.place((2,), (1,), torch.int64)
        entries.append(EntryPlaces(parts, copies, count, count_copy, mark))
    # The first part's updates are those of the parameter.
    for number, (whole, _) in reversed([*wholes.items()]):
        entries[whole] = replace(entries[whole], count=entries[number].count)
    return entries


def _lay_out_one(layout: Layout, tensor: torch.Tensor, kind: str | None) -> dict[str, Place]:
    """Places for a tensor and its state of an optimiser, by name."""
    import torch

    # Dense tensors: pieces of an update are ranges of elements in memory.
    places = {"value": layout.dense(tensor)}
    shape = tuple(tensor.shape)
    for part in state_tensors(kind, shape) if kind else ():
        dtype = getattr(torch, part.dtype) if part.dtype else tensor.dtype
        if part.shape != shape:
            places[part.name] = layout.like(torch.empty(part.shape, dtype=dtype, device="meta"))
        elif dtype is tensor.dtype:
            places[part.name] = layout.dense(tensor)
        else:
            places[part.name] = layout.dense(torch.empty_like(tensor, dtype=dtype, device="meta"))
    return places


class Entry:
    """A tensor of the model and its optimiser state, see `EntryPlaces`."""

    def __init__(
        self,
        parts: Mapping[str, torch.Tensor],
        copies: Sequence[torch.Tensor],
        counts: tuple[torch.Tensor, torch.Tensor],
        mark: NDArray[np.int64],
    ) -> None:
        self.parts = tuple(parts.values())
        self.moments = {name: part for name, part in parts.items() if name != "value"}
        self.copies = tuple(copies)
        self.count, self._count_copy = counts
        self._mark = mark

    @classmethod
    def at(cls, places: EntryPlaces, raw: torch.Tensor) -> Entry:
        """The entry at these places of a block of bytes."""
        parts = {name: place.view(raw) for name, place in places.parts.items()}
        copies = [place.view(raw) for place in places.copies]
        counts = places.count.view(raw), places.count_copy.view(raw)
        return cls(parts, copies, counts, places.mark.view(raw).numpy())

    def on(self, device: torch.device) -> Entry:
        """A copy on a device; a failed step is not undone from it."""
        parts_by_name = dict(zip(("value", *self.moments), self.parts, strict=True))
        parts = {name: part.to(device, copy=True) for name, part in parts_by_name.items()}
        return Entry(parts, (), (self.count.clone(), self.count.clone()), self._mark.copy())

    def take(self, other: Entry) -> None:
        """Copy another entry."""
        for part in range(len(self.all_parts)):
            self.take_part(other, part)

    def take_part(self, other: Entry, part: int) -> None:
        """Copy one of `all_parts` of another entry."""
        self.all_parts[part].copy_(other.all_parts[part])

    def match(self, other: Entry) -> None:
        """Copy another entry; equal parts are not written."""
        import torch

        for part, (ours, theirs) in enumerate(zip(self.all_parts, other.all_parts, strict=True)):
            if not torch.equal(ours, theirs):
                self.take_part(other, part)

    @property
    def all_parts(self) -> tuple[torch.Tensor, ...]:
        """The tensor, the moments, and the count of updates."""
        return (*self.parts, self.count)

    @property
    def value(self) -> torch.Tensor:
        """The tensor."""
        return self.parts[0]

    def begin(self, step: int) -> None:
        """Mark that step number `step` has copied nothing yet."""
        self._count_copy.copy_(self.count)
        # The number of the step is written last: were this process killed in between, the mark
        # would still be that of an earlier step, which is not undone again.
        self._mark[1] = 0
        self._mark[0] = step

    def copied(self, count: int) -> None:
        """Mark that the first `count` rows of every part are copied and may change."""
        self._mark[1] = count

    def keep(self, step: int) -> None:
        """Copy everything, before step number `step` changes it."""
        self.begin(step)
        # State that no step changes has no copies.
        for copy, part in zip(self.copies, self.parts, strict=False):
            copy.copy_(part)
        self.copied(len(rows(self.value)))

    def undo(self, step: int) -> None:
        """Restore the state before step number `step`."""
        if self._mark[0] != step or not self.copies:
            return
        count = int(self._mark[1])
        # Only copied rows can have changed; the rest of the copy is from an earlier step.
        for copy, part in zip(self.copies, self.parts, strict=True):
            if part.shape == self.value.shape:
                rows(part)[:count].copy_(rows(copy, part)[:count])
            elif count:
                # State of another shape changes in one piece.
                part.copy_(copy)
        self.count.copy_(self._count_copy)
        self._mark[0] = 0  # the next call repeats the number


def rows(tensor: torch.Tensor, like: torch.Tensor | None = None) -> torch.Tensor:
    """The elements of a dense tensor, in memory order; a part of a parameter, which has gaps, as it
    is.

    Args:
        like: a tensor of the same shape that decides; None for the tensor itself.
    """
    decisive = tensor if like is None else like
    if extent(tuple(decisive.shape), decisive.stride()) != decisive.numel():
        return tensor
    return tensor.as_strided((tensor.numel(),), (1,))


class Mirror:
    """The state of one device with memory of its own.

    Args:
        host: the state in common memory, by number.
        here: numbers of the state on this device.
        changed: numbers of the state that a step changes here.

    Attributes:
        state: by number, the entries that the device works on.
    """

    def __init__(
        self,
        host: Sequence[Entry],
        here: Collection[int],
        changed: Collection[int],
        device: torch.device,
    ) -> None:
        self._host, self._changed = host, changed
        self.state = [
            entry.on(device) if number in here else entry for number, entry in enumerate(host)
        ]
        self._here = here

    def load_all(self) -> None:
        """Copy all state of this device from common memory, where it is up to date."""
        for number in self._here:
            self.state[number].take(self._host[number])

    def load(self, changed: Iterable[tuple[int, int]]) -> None:
        """Copy changed state from common memory, where the rest may be out of date.

        Args:
            changed: the number of a tensor, and that of a part of its `Entry.all_parts`.
        """
        for number, part in changed:
            if number in self._here:
                self.state[number].take_part(self._host[number], part)

    def store(self, step: int) -> None:
        """Copy the changes up to step number `step` to common memory."""
        for number in self._changed:
            self._host[number].keep(step)
            self._host[number].take(self.state[number])


@dataclass(frozen=True)
class Places:
    """Places of all shared tensors; they can be sent to another process.

    Attributes:
        state: by number, a tensor of the model and its optimiser state.
        flags: by slot, the last step that wrote it; and the step that was aborted.
        slots: by channel, the tensor that crosses.
        inputs, results: of the step.
    """

    state: list[EntryPlaces]
    flags: Place
    slots: tuple[Place, ...]
    inputs: tuple[Place, ...]
    results: tuple[Place, ...]


class Common:
    """The tensors at these places of a block of bytes, see `Places`.

    Attributes:
        raw: the block.
        flags: (slots + 1,) uint32.
    """

    def __init__(self, places: Places, raw: torch.Tensor) -> None:
        self.raw = raw
        self.state = [Entry.at(entry, raw) for entry in places.state]
        # The core's flags are unsigned; PyTorch has hardly any operators for uint32.
        self.flags = places.flags.view(raw).numpy().view("uint32")
        self.slots = [place.view(raw) for place in places.slots]
        self._places = places.inputs
        self.shift_inputs([0] * len(self._places))
        self.results = [place.view(raw) for place in places.results]

    def shift_inputs(self, shifts: Sequence[int]) -> None:
        """Shift each input by these bytes, so that it is aligned like the caller's."""
        self.inputs = [
            place.shifted(shift).view(self.raw)
            for place, shift in zip(self._places, shifts, strict=True)
        ]


def shared_places(
    placed_program: PlacedProgram, tensors: Sequence[torch.Tensor], changed: frozenset[int]
) -> tuple[Layout, Places]:
    """Consecutive places for all shared tensors.

    Args:
        tensors: of the model, by number.
        changed: numbers of the tensors that a failed step must undo.
    """
    import torch

    layout, program = Layout(), placed_program.program
    state = lay_out(layout, tensors, placed_program.updated, changed, placed_program.parts)
    slots = tuple(layout.block(placed_program.channels, sum(placed_program.channel_bytes)))
    inputs, results = layout.shiftable(program.inputs), layout.nodes(program.results)
    flags = layout.place((len(slots) + 1,), (1,), torch.int32)
    return layout, Places(state, flags, slots, inputs, results)
