"""All legal layouts of a model on a machine, priced at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from situate.errors import SituateError
from situate.language.training.layout import (
    H1,
    ONE_F_ONE_B,
    V_CHUNKS,
    Integers,
    LayoutTable,
    Run,
    V,
    group_size,
)
from situate.language.training.layout_rules import recomputations
from situate.language.training.machine import Machine
from situate.language.training.memory import MARGIN, peak_memory
from situate.language.training.pricing import Price, prices
from situate.language.training.seconds import step_seconds
from situate.language.training.transformer import Transformer

MICRO = (1, 2, 4, 8, 16, 32)
"""Samples of a micro-batch that the search tries."""

CHUNKS = (1, 2, 3, 4, 5, 6, 8, 10)
"""Chunks of a stage that the search tries."""

ANSWER_LAYOUTS = 10
"""Layouts of an answer."""

SAMPLES = 4
"""Samples of a step for each GPU, where a request does not say the batch."""


@dataclass(frozen=True)
class Choice:
    """The best layouts.

    Attributes:
        best: those that fit, the fastest first; one for each way to divide the model.
        legal: legal layouts.
        fitting: legal layouts that fit.
        smallest: the layout with least memory, if none fits.
        sure: the layouts have room for 99 of 100 runs; False if none has, and the predicted bytes
            decide.
    """

    best: list[Price]
    legal: int
    fitting: int
    smallest: Price | None
    sure: bool = True


def search(
    model: Transformer, run: Run, machine: Machine, batch: int, count: int = ANSWER_LAYOUTS
) -> Choice:
    """The fastest layouts that fit 99 of 100 runs; if there are none, those that may fit.

    Args:
        model: the transformer.
        run: the sequence, the recipe, and the further predictions of its layout.
        machine: the cluster.
        batch: samples of a step.
        count: layouts to return.

    Raises:
        SituateError: no layout is legal.
    """
    table = legal_layouts(model, run, machine, batch)
    if not len(table):
        raise SituateError(
            f"--layout auto: no layout divides {model.heads} heads, {model.layers} layers and "
            f"{batch} samples among {machine.count} GPUs: change batch"
        )
    reserved = peak_memory(model, run, table).reserved
    fits = MARGIN * reserved <= machine.weakest.memory
    sure = bool(fits.any())
    fits = fits if sure else reserved <= machine.weakest.memory
    if not fits.any():
        least = table.rows(np.array([int(np.argmin(reserved))]))
        return Choice([], len(table), 0, prices(model, run, machine, least)[0])
    fitting = table.rows(fits)
    seconds = np.sum([*step_seconds(model, run, machine, fitting).values()], axis=0)
    order = _distinct(fitting, np.argsort(seconds, kind="stable"), count)
    best = prices(model, run, machine, fitting.rows(order))
    return Choice(best, len(table), int(fits.sum()), None, sure)


def _distinct(table: LayoutTable, order: Integers, count: int) -> Integers:
    """The first rows of an order with different degrees of parallelism."""
    degrees = ("dp", "tp", "cp", "ep", "pp", "zero", "shard")
    keys = np.stack([table.columns[name] for name in degrees], axis=1)[order]
    # `unique` sorts by value; sorted indices of firsts bring back the order.
    first = np.unique(keys, axis=0, return_index=True)[1]
    return order[np.sort(first)[:count]]


def legal_layouts(model: Transformer, run: Run, machine: Machine, batch: int) -> LayoutTable:
    """All layouts that `check_layout` accepts, for equal devices and this batch."""
    rows = []
    for tp, pp, cp in product(_divisors(machine.count), repeat=3):
        if machine.count % (tp * pp * cp) == 0 and _divides(model, run, machine, tp, pp, cp):
            dp = machine.count // (tp * pp * cp)
            shards = _shards(machine, dp, tp * cp)
            rows += _with_micro(model, run, batch, (dp, tp, cp, pp), shards)
    names = (
        *("dp", "tp", "cp", "ep", "etp", "pp", "vp", "micro", "count", "zero", "shard", "sp"),
        *("recompute", "offload", "schedule"),
    )
    columns = np.array(rows, np.int64).reshape(len(rows), len(names)).T
    mtp = np.full(len(rows), run.layout.mtp)
    return LayoutTable(dict(zip(names, columns, strict=True)) | {"mtp": mtp})


def _divisors(number: int) -> list[int]:
    """Divisors of a positive integer, the smallest first."""
    return [i for i in range(1, number + 1) if number % i == 0]


def _divides(model: Transformer, run: Run, machine: Machine, tp: int, pp: int, cp: int) -> bool:
    """True if these degrees divide heads, widths, layers and sequence."""
    return (
        model.heads % tp == 0
        and (model.kv_heads % tp == 0 or tp % model.kv_heads == 0)
        and model.ffn % tp == 0
        and tp <= machine.node
        and pp <= model.layers
        and (cp == 1 or run.sequence % (2 * cp) == 0)
        and run.sequence % (tp * cp) == 0
    )


def _with_micro(
    model: Transformer,
    run: Run,
    batch: int,
    degrees: tuple[int, int, int, int],
    shards: tuple[int, ...],
) -> list[tuple[int, ...]]:
    """Rows of a division of the devices, with its micro-batches, chunks, ZeRO and recompute."""
    dp, tp, cp, pp = degrees
    rows: list[tuple[int, ...]] = []
    group = dp * cp * tp
    experts = model.experts.count if model.experts else 1
    passes = {vp: _passes(model, run, vp) for vp in CHUNKS}
    parallel = [ep for ep in _divisors(experts) if group % ep == 0]
    for micro, vp, ep, zero in product(MICRO, CHUNKS, parallel, _stages(run, dp * cp, pp)):
        if batch % (dp * micro):
            continue
        count = batch // (dp * micro)
        if vp > 1 and (pp == 1 or model.layers % (pp * vp) or not group_size(count, pp)):
            continue
        rows += [
            (dp, tp, cp, ep, 1, pp, vp, micro, count, zero, shard, int(tp > 1), recompute, 0, order)
            for recompute, order in passes[vp]
            for shard in (shards if zero else (0,))
            if _holds_experts(run, ep, zero, shard or dp, cp * tp)
        ]
    return rows


def _holds_experts(run: Run, ep: int, zero: int, shard: int, group: int) -> bool:
    """True if the program can divide experts among `ep` devices.

    Args:
        run: with the recipe's program.
        ep: devices of the experts.
        zero: ZeRO's stage.
        shard: replicas among which it divides states.
        group: devices of a replica's stage.
    """
    if run.recipe.software.experts_in_shards:
        return (shard if zero == 3 else 1) * group % ep == 0
    return ep <= shard * group


def _passes(model: Transformer, run: Run, vp: int) -> list[tuple[int, int]]:
    """Recomputation and schedules of a pipeline with so many chunks that the recipe's program has.

    torchtitan's zero-bubble schedules take stages of several chunks, and ZB-V of two.
    """
    kinds = recomputations(model, run.recipe)
    plain = [(recompute, ONE_F_ONE_B) for recompute in range(len(kinds))]
    if not run.recipe.software.zero_bubble or vp == 1:
        return plain
    return [*plain, (0, H1), *([(0, V)] if vp == V_CHUNKS else [])]


def _shards(machine: Machine, dp: int, group: int) -> tuple[int, ...]:
    """Sizes of groups that hold all states: all replicas (0), and those inside a node."""
    inside = machine.node // group
    return (0, inside) if 1 < inside < dp and dp % inside == 0 else (0,)


def _stages(run: Run, replicas: int, pp: int) -> tuple[int, ...]:
    """ZeRO's stages that the recipe's program has."""
    if replicas == 1:
        return (0,)
    if run.recipe.name == "megatron":
        return (0, 1)
    if run.recipe.name == "deepspeed":
        return (0, 1) if pp > 1 else (0, 1, 2, 3)
    return (0, 3)


def default_batch(machine: Machine) -> int:
    """Samples of a step where a request does not say them."""
    return SAMPLES * machine.count
