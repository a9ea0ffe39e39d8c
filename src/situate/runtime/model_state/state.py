"""The state of a model in one block of memory: parameters, buffers, what the optimiser keeps, and
a copy of what a step changes, from which a step that fails is undone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from situate.runtime.memory import Layout, Place
from situate.runtime.model_state.optimizers import MOMENTS

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class EntryPlaces:
    """Places of a tensor of the model, and of what belongs to it.

    Attributes:
        parts: the tensor, and the moments that the optimiser keeps of it, by name.
        copies: of the parts; none of what no step changes.
        count: steps that have updated it; its copy.
        mark: the step that last began to copy, and the elements it has copied.
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
) -> list[EntryPlaces]:
    """Places for the state of a step.

    Args:
        tensors: of the model, by number.
        updated: by number of a parameter that the step updates, the kind of its optimiser.
        changed: numbers of what a step that fails must undo.
    """
    import torch

    entries = []
    for number, tensor in enumerate(tensors):
        moments = MOMENTS[updated[number]] if number in updated else ()
        parts = {name: layout.dense(tensor) for name in ("value", *moments)}
        copies = tuple(layout.dense(tensor) for _ in (parts if number in changed else ()))
        count, count_copy = (layout.place((), (), torch.float32) for _ in range(2))
        mark = layout.place((2,), (1,), torch.int64)
        entries.append(EntryPlaces(parts, copies, count, count_copy, mark))
    return entries


class Entry:
    """A tensor of the model and what belongs to it, see `EntryPlaces`."""

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
        """A copy on a device, which a step that fails is not undone from."""
        parts_by_name = dict(zip(("value", *self.moments), self.parts, strict=True))
        parts = {name: part.to(device, copy=True) for name, part in parts_by_name.items()}
        return Entry(parts, (), (self.count.clone(), self.count.clone()), self._mark.copy())

    def take(self, other: Entry) -> None:
        """Be as another entry is."""
        for part in range(len(self.all_parts)):
            self.take_part(other, part)

    def take_part(self, other: Entry, part: int) -> None:
        """Be as another entry is in one of `all_parts`."""
        self.all_parts[part].copy_(other.all_parts[part])

    def match(self, other: Entry) -> None:
        """Be as another entry is; what is equal already is not written."""
        import torch

        for part, (ours, theirs) in enumerate(zip(self.all_parts, other.all_parts, strict=True)):
            if not torch.equal(ours, theirs):
                self.take_part(other, part)

    @property
    def all_parts(self) -> tuple[torch.Tensor, ...]:
        """The tensor, the moments, and the count of steps."""
        return (*self.parts, self.count)

    @property
    def value(self) -> torch.Tensor:
        """The tensor."""
        return self.parts[0]

    def begin(self, step: int) -> None:
        """Note that nothing is copied yet in step number `step`."""
        self._count_copy.copy_(self.count)
        # The number of the step is written last: were this process killed in between, the mark
        # would still be that of an earlier step, which is not undone again.
        self._mark[1] = 0
        self._mark[0] = step

    def copied(self, elements: int) -> None:
        """Note that the first elements of every part are copied: they may be changed."""
        self._mark[1] = elements

    def keep(self, step: int) -> None:
        """Copy everything, before step number `step` changes it."""
        self.begin(step)
        # There are no copies of what no step changes.
        for copy, part in zip(self.copies, self.parts, strict=False):
            copy.copy_(part)
        self.copied(self.value.numel())

    def undo(self, step: int) -> None:
        """Be as before step number `step`."""
        if self._mark[0] != step or not self.copies:
            return
        elements = int(self._mark[1])
        # Only what was copied can have changed: the rest of the copy is of an earlier step.
        for copy, part in zip(self.copies, self.parts, strict=True):
            flat(part)[:elements].copy_(flat(copy)[:elements])
        self.count.copy_(self._count_copy)
        self._mark[0] = 0  # its number is given again


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a dense tensor, as they lie in memory."""
    return tensor.as_strided((tensor.numel(),), (1,))


class Mirror:
    """The state that one device holds.

    Args:
        host: the state in common memory, by number.
        here: numbers of what this device holds.
        changed: numbers of what a step changes here.

    Attributes:
        state: by number, what the device works on.
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
        """Take over everything, where what is in common memory is up to date."""
        for number in self._here:
            self.state[number].take(self._host[number])

    def load(self, changed: Iterable[tuple[int, int]]) -> None:
        """Take over what was changed in common memory, and no more: the rest may be old there.

        Args:
            changed: the number of a tensor, and that of a part of its `Entry.all_parts`.
        """
        for number, part in changed:
            if number in self._here:
                self.state[number].take_part(self._host[number], part)

    def store(self, step: int) -> None:
        """Bring back what step number `step`, or any before it, has changed."""
        for number in self._changed:
            self._host[number].keep(step)
            self._host[number].take(self.state[number])
