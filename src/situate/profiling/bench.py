"""The assignments of profiling workers: the whole step, the round trips, and memory for each."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from situate.profiling.plain_step import ONES_KERNEL, OpNumbers, RoundTrip, plain_step, worker_clock
from situate.runtime.device import Share
from situate.runtime.hardware import RealDevice
from situate.runtime.memory import Layout, anonymous_file, mapped
from situate.runtime.model_state import optimizers
from situate.runtime.model_state.bindings import state_values
from situate.runtime.model_state.state import Common, Places, lay_out
from situate.runtime.processes.messages import Assignment
from situate.runtime.programs.custom_ops import defining_modules
from situate.runtime.programs.placed import place
from situate.runtime.settings import current_settings
from situate.runtime.subject import Subject


class Bench:
    """Lays out and fills one block of memory for all profiled devices.

    Attributes:
        block: its descriptor.
        assignments: of every device. The timed step runs all ops of the program; the plain step is
            `plain_step`.
        marks: the op numbers of the plain step's timings.
    """

    def __init__(
        self, subject: Subject, devices: Sequence[RealDevice], trips: Sequence[RoundTrip]
    ) -> None:
        program = subject.program
        # The whole program is placed on one device: each worker runs all ops.
        here = np.zeros(len(program.graph.ops), np.int32)
        self._subject, self._trips = subject, trips
        self.marks = OpNumbers(len(program.graph.ops), len(trips))
        self._program = place(program, here, program.graph.program_order, 1)
        self._tensors = state_values(self._program, subject.model)
        layout = Layout()
        places_by_device = self._places(layout, len(devices))
        self.block = anonymous_file(layout.nbytes)
        self._fill(places_by_device)
        self.assignments = [
            self._assignment(i, places, device)
            for i, (places, device) in enumerate(zip(places_by_device, devices, strict=True))
        ]

    def close(self) -> None:
        """Release the memory, once every process has mapped it."""
        os.close(self.block)

    def _places(self, layout: Layout, count: int) -> list[Places]:
        import torch

        program, placed_program = self._subject.program, self._program
        changed = frozenset(placed_program.updated) | placed_program.overwritten
        by_size = {
            size: layout.place((size // 4,), (1,), torch.float32)
            for size in dict.fromkeys(trip.size for trip in self._trips)
        }
        # All round trips of a size share a slot, as they run one after the other.
        # Two channels per trip, there and back.
        slots = tuple(by_size[trip.size] for trip in self._trips for _ in range(2))
        flags = layout.place((len(slots) + 1,), (1,), torch.int32)
        return [
            Places(
                lay_out(
                    layout,
                    self._tensors,
                    placed_program.updated,
                    changed,
                    placed_program.parts,
                ),
                flags,
                slots,
                layout.nodes(program.inputs),
                layout.nodes(program.results),
            )
            for _ in range(count)
        ]

    def _fill(self, places_by_device: Sequence[Places]) -> None:
        raw = mapped(self.block)
        for common in (Common(places, raw) for places in places_by_device):
            for entry, value in zip(common.state, self._tensors, strict=True):
                entry.value.copy_(value.detach())
            for slot, value in zip(common.inputs, self._subject.inputs, strict=True):
                slot.copy_(value)

    def _assignment(self, number: int, places: Places, device: RealDevice) -> Assignment:
        return Assignment(
            places,
            self._share(number, device),
            device.torch,
            _threads(device),
            self._hyperparameters(),
            modules=defining_modules(self._program.names.kernels),
            settings=current_settings(),
        )

    def _share(self, number: int, device: RealDevice) -> Share:
        placed_program, program = self._program, self._subject.program
        names = placed_program.names
        # Last, so that the numbers of the program's kernels stay.
        kernels = (*names.kernels, ONES_KERNEL)
        clock = worker_clock(device.threads)
        return Share(
            plain_step(self._trips, number, len(kernels) - 1, self.marks, clock),
            placed_program.sources[0].text(timed=True),
            kernels,
            tuple(value for _, value in names.constants.values()),
            dict.fromkeys(placed_program.updated, 0),
            program.optimizer,
            2 * len(self._trips),
            len(names.seeds),
            0,
            clock=clock,
            one=names.one,
        )

    def _hyperparameters(self) -> list[optimizers.Hyperparameters]:
        """Settings with a learning rate of zero, so repeated steps leave the parameters
        unchanged."""
        program = self._subject.program
        if not program.training:
            return []
        updated = [p for p in self._subject.model.parameters() if p.requires_grad]
        groups = optimizers.hyperparameters(
            optimizers.default_optimizer(program.optimizer, updated)
        )
        return [group | {"lr": 0.0} for group in groups]


def _threads(device: RealDevice) -> int:
    import torch

    return device.threads or torch.get_num_threads()
