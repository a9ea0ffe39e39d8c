"""The memory that the devices of a placed step share: one block, which each of them maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from situate.runtime.memory import Layout, Place
from situate.runtime.model_state.state import Entry, EntryPlaces, lay_out
from situate.runtime.programs.placed import PlacedProgram

if TYPE_CHECKING:
    import torch


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
    state = lay_out(layout, tensors, placed_program.updated, changed)
    slots = tuple(layout.block(placed_program.channels, sum(placed_program.channel_bytes)))
    inputs, results = layout.shiftable(program.inputs), layout.nodes(program.results)
    flags = layout.place((len(slots) + 1,), (1,), torch.int32)
    return layout, Places(state, flags, slots, inputs, results)
