"""State in memory of its own, for tests of its changes."""

from __future__ import annotations

import torch

from situate.runtime.memory import Layout
from situate.runtime.model_state.state import Entry, lay_out


def entry(value: torch.Tensor, kind: str = "adam", *, keep: bool = True) -> Entry:
    """A parameter that an optimiser of that kind updates."""
    layout = Layout()
    [places] = lay_out(layout, [value], {0: kind}, frozenset([0] if keep else []))
    entries = Entry.at(places, torch.zeros(layout.nbytes, dtype=torch.uint8))
    entries.value.copy_(value)
    return entries


def contents(entries: Entry) -> list[torch.Tensor]:
    """A copy of all that a step may change."""
    return [part.clone() for part in (*entries.parts, entries.count)]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Equal to the last bit."""
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
