"""The time and the memory of one layout, with the reasons for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from situate.language.training.layout import LayoutTable, Run
from situate.language.training.machine import Machine
from situate.language.training.memory import MARGIN, peak_memory, stage_memory
from situate.language.training.seconds import idle_rounds, step_seconds
from situate.language.training.transformer import Transformer


@dataclass(frozen=True)
class Price:
    """The figures of a layout.

    Attributes:
        run: the layout, its sequences and its recipe.
        parts: seconds of a step by part.
        roles: bytes of a device of the fullest stage, by role.
        reserved: bytes that the allocator takes for them, with NCCL's buffers.
        stages: reserved bytes of a device of each stage; empty in a search.
        capacity: bytes of the smallest GPU.
        tokens: of a step.
        flops: of a token in the model, without repeated ones.
        peak_rate: nominal FLOP/s of all GPUs together.
        devices: GPUs.
        errors: relative errors of predicted seconds that half and nine tenths of published runs
            are within.
        idle_rounds: waiting of a stage, by the seconds of a micro-batch in it.
    """

    run: Run
    parts: dict[str, float]
    roles: dict[str, float]
    reserved: float
    capacity: int
    tokens: int
    flops: float
    peak_rate: float
    devices: int
    errors: tuple[float, float]
    idle_rounds: float
    stages: tuple[float, ...] = ()

    @property
    def seconds(self) -> float:
        """Seconds of a step."""
        return sum(self.parts.values())

    @property
    def allocated(self) -> float:
        """Bytes of tensors at the peak."""
        return sum(size for role, size in self.roles.items() if role != "communication")

    @property
    def high(self) -> float:
        """Reserved bytes that 99 of 100 runs stay below."""
        return MARGIN * self.reserved

    @property
    def fits(self) -> bool:
        """True if the device has room for 99 of 100 runs."""
        return self.high <= self.capacity

    @property
    def may_fit(self) -> bool:
        """True if the device has the predicted bytes."""
        return self.reserved <= self.capacity

    @property
    def rate(self) -> float:
        """Tokens/s of all GPUs."""
        return self.tokens / self.seconds

    @property
    def utilisation(self) -> float:
        """Model FLOP utilisation (MFU; Chowdhery et al., arXiv:2204.02311, appendix B)."""
        return self.rate * self.flops / self.peak_rate

    @property
    def bubble(self) -> float:
        """Share of a pipeline's time in which a stage waits."""
        return self.idle_rounds / (self.run.layout.count + self.idle_rounds)

    @property
    def limit(self) -> str:
        """The part with most seconds; if memory does not suffice, the role with most bytes."""
        if not self.may_fit:
            role = max(self.roles, key=lambda name: self.roles[name])
            return f"memory: {role}"
        part = max(self.parts, key=lambda name: self.parts[name])
        return f"bubble and {part}" if self.bubble > 0.25 else part


def price(model: Transformer, run: Run, machine: Machine) -> Price:
    """The figures of a layout.

    Args:
        model: the transformer.
        run: the layout with its sequences and its recipe.
        machine: the cluster; the slowest and the smallest GPU count for all.
    """
    figures = prices(model, run, machine, LayoutTable.of([run.layout]))[0]
    # A row of the same layout for each stage.
    stages = LayoutTable.of([run.layout] * run.layout.pp)
    memory = stage_memory(model, run, stages, np.arange(run.layout.pp))
    return replace(figures, stages=tuple(memory.reserved.tolist()))


def prices(model: Transformer, run: Run, machine: Machine, table: LayoutTable) -> list[Price]:
    """The figures of every layout of a table; sequences and recipe are those of `run`."""
    seconds = step_seconds(model, run, machine, table)
    idle = idle_rounds(model, run, machine, table)
    memory = peak_memory(model, run, table)
    reserved = memory.reserved
    result = []
    for i in range(len(table)):
        layout = table.layout(i)
        result.append(
            Price(
                run=Run(layout, run.sequence, run.recipe),
                parts={part: float(values[i]) for part, values in seconds.items()},
                roles={role: float(values[i]) for role, values in memory.roles.items()},
                reserved=float(reserved[i]),
                capacity=machine.weakest.memory,
                tokens=layout.batch * run.sequence,
                flops=model.flops(run.sequence),
                peak_rate=_peak_rate(run, machine),
                devices=machine.count,
                errors=(run.recipe.software.pace.error, run.recipe.software.pace.large_error),
                idle_rounds=float(idle[i]),
            )
        )
    return result


def _peak_rate(run: Run, machine: Machine) -> float:
    """Nominal FLOP/s of 16-bit products, which MFU is stated by; of float32 where all are."""
    kinds = ("bfloat16", "float16", "float32")
    if run.recipe.precision == "fp32":
        kinds = ("float32",) * 3
    return sum(next((r for k in kinds if (r := gpu.rate(k))), 1e12) for gpu in machine.gpus)
