"""State on a device that has memory of its own: it works on copies there, which are brought back to
the memory that all processes map."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from situate.runtime.model_state.state import Entry

if TYPE_CHECKING:
    import torch


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
