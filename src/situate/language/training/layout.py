"""Layouts of a training run: its degrees of parallelism, its micro-batches, its recomputation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.language.training.recipes import Recipe

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

RECOMPUTE = ("none", "selective", "full", "modules")
"""Recomputation of activations by its number in a table.

`modules` is that of Megatron-LM's `--recompute-modules layernorm moe_act mla_up_proj`.
"""

SWITCHES = ("sp", "offload")
"""Keys with the values on and off."""

SCHEDULES = ("1f1b", "zero-bubble", "zero-bubble-h2", "zero-bubble-v")
"""Orders of a pipeline's passes by their number in a table. The first two interleave the chunks of
a stage, if it has several."""

ONE_F_ONE_B, H1, H2, V = range(len(SCHEDULES))
"""Numbers of the schedules: 1F1B, and ZB-H1, ZB-H2 and ZB-V of arXiv:2401.10241."""

V_CHUNKS = 2
"""Chunks of a stage in ZB-V: a micro-batch passes the stages forwards and backwards."""

NUMBERED = {"recompute": RECOMPUTE, "schedule": SCHEDULES}
"""Columns of a table that are numbers of words."""


@dataclass(frozen=True)
class Layout:
    """A layout.

    Attributes:
        dp: replicas of the model, each with samples of its own.
        tp: devices among which matrices are divided.
        cp: devices among which a sequence is divided.
        ep: devices among which the experts of a layer are divided; they are among `dp * cp * tp`.
        etp: devices among which the matrices of an expert are divided.
        pp: stages of the pipeline.
        vp: chunks of layers on each stage; more than one interleaves them.
        micro: samples of a micro-batch.
        count: micro-batches of a step for each replica.
        zero: ZeRO's stage: 0 replicates all states, 1 divides masters and moments among the
            replicas, 2 gradients too, 3 weights too.
        shard: replicas among which ZeRO divides states, the rest of which are copies (hybrid
            sharding); 0 for all of `dp`.
        sp: the activations between matrices are divided among `tp` too (sequence parallelism).
        recompute: activations that the backward pass computes again.
        offload: masters, moments and their update are in host memory.
        mtp: layers of the last stage that predict further tokens (multi-token prediction;
            DeepSeek-V3, arXiv:2412.19437, section 2.2).
        schedule: the order of a pipeline's passes. In all but 1F1B gradients of weights run late,
            where the pipeline would wait.
    """

    dp: int = 1
    tp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    pp: int = 1
    vp: int = 1
    micro: int = 1
    count: int = 1
    zero: int = 0
    shard: int = 0
    sp: bool = False
    recompute: str = "none"
    offload: bool = False
    mtp: int = 0
    schedule: str = SCHEDULES[ONE_F_ONE_B]

    @property
    def late(self) -> bool:
        """True if gradients of weights run late."""
        return self.schedule != SCHEDULES[ONE_F_ONE_B]

    @property
    def shards(self) -> int:
        """Replicas among which ZeRO-3 divides all states."""
        return (self.shard or self.dp) if self.zero == 3 else 1

    def stage(self, chunk: int) -> int:
        """The stage of a chunk of layers, both in the order in which a micro-batch passes them."""
        if self.schedule == SCHEDULES[V] and chunk >= self.pp:
            return V_CHUNKS * self.pp - 1 - chunk
        return chunk % self.pp

    @property
    def last_stage(self) -> int:
        """The stage with the output."""
        return self.stage(self.pp * self.vp - 1)

    @property
    def devices(self) -> int:
        """Devices of all replicas."""
        return self.dp * self.tp * self.cp * self.pp

    @property
    def batch(self) -> int:
        """Samples of a step."""
        return self.dp * self.micro * self.count

    def __str__(self) -> str:
        """The layout as `--layout` reads it."""
        degrees = [f"dp={self.dp}", f"tp={self.tp}", f"pp={self.pp}"]
        degrees += [
            f"{key}={getattr(self, key)}"
            for key in ("cp", "ep", "etp", "vp", "shard")
            if getattr(self, key) > 1
        ]
        degrees += [f"mtp={self.mtp}"] if self.mtp else []
        degrees += [f"micro={self.micro}", f"batch={self.batch}", f"zero={self.zero}"]
        degrees += [f"{key}=on" for key in SWITCHES if getattr(self, key)]
        degrees += [f"schedule={self.schedule}"] if self.late else []
        return ",".join([*degrees, f"recompute={self.recompute}"])


@dataclass(frozen=True)
class Run:
    """A layout with the sequences and the recipe of the run.

    Attributes:
        layout: the layout.
        sequence: tokens of a sample.
        recipe: the states of each parameter.
    """

    layout: Layout
    sequence: int
    recipe: Recipe


def group_size(count: int, pp: int) -> int:
    """Micro-batches that pass a chunk of an interleaved stage before the next chunk's turn.

    As in PyTorch's and Megatron-LM's schedules they are the fewest, at least `pp`, in groups of
    equal size. 0 if `count` micro-batches have no such groups.
    """
    groups = count // pp
    return 0 if not groups or count % groups else count // groups


class LayoutTable:
    """Many layouts as columns, which the formulas of time and memory read.

    Attributes have shape (layouts,) and the names of `Layout`; `recompute` is an index of
    `RECOMPUTE`, and `schedule` one of `SCHEDULES`.
    """

    dp: Integers
    tp: Integers
    cp: Integers
    ep: Integers
    etp: Integers
    pp: Integers
    vp: Integers
    micro: Integers
    count: Integers
    zero: Integers
    shard: Integers
    sp: Integers
    recompute: Integers
    offload: Integers
    mtp: Integers
    schedule: Integers

    def __init__(self, columns: dict[str, Integers]) -> None:
        self.columns = columns
        for name, column in columns.items():
            setattr(self, name, column)

    def __len__(self) -> int:
        return len(self.dp)

    @classmethod
    def of(cls, layouts: Sequence[Layout]) -> LayoutTable:
        """The table of these layouts."""
        rows = [
            [
                NUMBERED[name].index(value) if name in NUMBERED else int(value)
                for name, value in asdict(layout).items()
            ]
            for layout in layouts
        ]
        columns = np.array(rows, np.int64).reshape(len(rows), -1).T
        return cls({field.name: columns[i] for i, field in enumerate(fields(Layout))})

    def rows(self, index: NDArray[Any]) -> LayoutTable:
        """The layouts of these numbers, or of a mask."""
        return LayoutTable({name: column[index] for name, column in self.columns.items()})

    def layout(self, index: int) -> Layout:
        """The layout of a row."""
        values: dict[str, Any] = {name: int(c[index]) for name, c in self.columns.items()}
        words = {name: texts[values[name]] for name, texts in NUMBERED.items()}
        return Layout(**values | words | {key: bool(values[key]) for key in SWITCHES})

    @cached_property
    def group(self) -> Integers:
        """Micro-batches that pass a chunk of an interleaved stage before the next chunk's turn."""
        size: Integers = self.count // np.maximum(self.count // self.pp, 1)
        return size

    @cached_property
    def late(self) -> Flags:
        """Gradients of weights run late."""
        flags: Flags = self.schedule != ONE_F_ONE_B
        return flags

    @cached_property
    def last_stage(self) -> Integers:
        """The stage with the output: the first one, if chunks go backwards through the stages."""
        return np.where(self.schedule == V, 0, self.pp - 1)

    @cached_property
    def apart(self) -> Flags:
        """Embedding and output are on different stages."""
        return self.last_stage > 0

    @cached_property
    def copies(self) -> Floats:
        """Groups of replicas that hold the same states."""
        return self.dp / np.where(self.shard > 0, self.shard, self.dp)

    @cached_property
    def spread(self) -> Floats:
        """Replicas among which ZeRO divides the states of matrices outside experts."""
        return self.dp * self.cp / self.copies

    @cached_property
    def expert_spread(self) -> Floats:
        """Replicas among which ZeRO divides the states of experts."""
        return self.spread * self.tp / (self.ep * self.etp)

    @cached_property
    def sequence_split(self) -> Floats:
        """Devices among which activations between matrices are divided."""
        return np.where(self.sp == 1, self.tp, 1).astype(float)
