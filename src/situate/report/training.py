"""Prices of training layouts for the terminal and for scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from situate.language.training.fine_tuning import Change, high_bytes
from situate.language.training.gpus import Gpu
from situate.language.training.machine import Machine
from situate.language.training.pricing import Price
from situate.language.training.search import Choice
from situate.language.training.transformer import Transformer
from situate.language.training.unequal import Shares
from situate.report.tables import table
from situate.report.text import plural, printable
from situate.report.training_steps import SimulatedStep, step_text, steps_table
from situate.report.units import count_text, share_text, size_text, time_text

MIN_SHARE = 0.01
"""Smaller shares of a step are left out."""

MIN_BYTES = 2**22
"""Smaller roles are left out."""

PART_NAMES = {
    "matrices": "matrix products",
    "grouped": "products of experts",
    "attention": "attention",
    "memory": "passes over memory",
    "launches": "waiting for launches",
    "tensor": "tensor parallelism",
    "context": "context parallelism",
    "experts": "exchange of experts",
    "head": "output and loss",
    "pipeline": "messages of the pipeline",
    "data": "gradients and weights",
    "update": "update",
    "host": "update in host memory",
}
"""Parts of a step as tables call them."""


def price_table(
    model: Transformer,
    machine: str,
    price: Price,
    commands: Mapping[str, str],
    step: SimulatedStep | None,
) -> RenderableType:
    """The figures of one layout, its memory by role, and its launch commands."""
    grid = Table.grid(padding=(0, 2))
    facts = [*_facts(model, price), *([("simulated", step_text(step))] if step else [])]
    for label, value in facts:
        grid.add_row(Text(label, "dim"), Text(printable(value)))
    title = f"{printable(model.name, 60)} on {printable(machine, 40)}"
    launch = [Text(f"{name}: {text}") for name, text in commands.items()]
    memory: list[RenderableType] = [_memory_table(price)]
    if len(price.stages) > 1:
        memory += [Text(), _stage_table(price)]
    return Group(Text(title, "bold"), grid, Text(), *memory, Text(), *launch)


def _facts(model: Transformer, price: Price) -> Iterator[tuple[str, str]]:
    layout, run = price.run.layout, price.run
    active = model.active_parameters
    some = f", {count_text(active)} active" if active != model.parameters else ""
    yield "model", f"{count_text(model.parameters)} parameters{some}"
    yield "layout", str(layout)
    yield "recipe", f"{run.recipe.name}, {run.recipe.precision}, {run.recipe.optimizer.name}"
    batch = f"{plural(layout.batch, 'sample')} of {run.sequence:,} tokens"
    micro = f"{layout.count:,} micro-batch{'' if layout.count == 1 else 'es'} of {layout.micro}"
    yield "step", f"{batch}, {micro} for each replica"
    yield "step time", f"{time_text(price.seconds)}, {_error_text(price)}"
    per_gpu = price.rate / price.devices
    yield "speed", f"{price.rate:,.0f} tokens/s, {per_gpu:,.0f} for each GPU"
    yield "MFU", share_text(price.utilisation)
    yield "time", ", ".join(_shares(price))
    if layout.pp > 1:
        yield "bubble", share_text(price.bubble)
    yield "limit", price.limit
    yield (
        "memory",
        f"{size_text(price.allocated)} allocated, {size_text(price.reserved)} reserved, in 99 of "
        f"100 runs below {size_text(price.high)}, of {size_text(price.capacity)}: "
        f"{_verdict(price)}",
    )


def _verdict(price: Price) -> str:
    if price.fits:
        return "fits"
    if price.may_fit:
        return "may fit"
    return f"does not fit: {size_text(price.reserved - price.capacity)} too much"


def _shares(price: Price) -> Iterator[str]:
    parts = sorted(price.parts.items(), key=lambda entry: -entry[1])
    for part, seconds in parts:
        if seconds >= MIN_SHARE * price.seconds:
            yield f"{share_text(seconds / price.seconds)} {PART_NAMES[part]}"


def _error_text(price: Price) -> str:
    half, most = (f"± {100 * error:.0f} %" for error in price.errors)
    return f"{half} in the median, {most} for nine in ten"


def _memory_table(price: Price) -> Table:
    """Bytes of the fullest device by role."""
    grid = table("memory of the fullest GPU", "role|GiB", [1])
    for role, size in price.roles.items():
        if size:
            grid.add_row(role, f"{size / 2**30:,.2f}")
    return grid


def _stage_table(price: Price) -> Table:
    """Reserved bytes of a GPU of each stage; equal neighbours share a line."""
    grid = table("a GPU of each stage", "stage|GiB reserved|GiB free", [1, 2])
    start = 0
    for end, size in enumerate(price.stages, start=1):
        if end < len(price.stages) and price.stages[end] == size:
            continue
        stages = f"{start}" if end == start + 1 else f"{start} to {end - 1}"
        free = price.capacity - size
        grid.add_row(stages, f"{size / 2**30:,.2f}", f"{free / 2**30:,.2f}")
        start = end
    return grid


def choice_table(
    model: Transformer,
    machine: Machine,
    choice: Choice,
    shares: Sequence[Shares],
    commands: Mapping[str, str],
    steps: Sequence[tuple[str, float, SimulatedStep | None]],
) -> RenderableType:
    """The best layouts, the fastest first, with the launch commands of the first.

    Args:
        steps: rows of `steps_table`.
    """
    name = f"{printable(model.name, 60)} on {printable(machine.name, 40)}"
    parts: list[RenderableType] = [Text(name, "bold")]
    if choice.best:
        parts += [Text(_tried_text(choice)), Text(), _layouts(choice.best)]
    elif choice.smallest is not None:
        parts.append(Text(_smallest_text(choice.smallest)))
    if shares:
        parts += [Text(), _shares_table(machine, shares)]
    if steps:
        parts += [Text(), steps_table(steps)]
    if commands:
        parts += [Text(), Text("launch the first with", "bold")]
        parts += [Text(f"{program}: {text}") for program, text in commands.items()]
    return Group(*parts)


def _tried_text(choice: Choice) -> str:
    first = choice.best[0]
    batch = f"{plural(first.run.layout.batch, 'sample')} of {first.run.sequence:,} tokens"
    fit = "fit" if choice.sure else "may fit, and none fits with 99 %"
    return (
        f"{choice.fitting:,} of {choice.legal:,} layouts {fit}; a step of {batch}, recipe "
        f"{first.run.recipe.name}; seconds {_error_text(first)}"
    )


def _smallest_text(price: Price) -> str:
    return (
        f"no layout fits: {price.run.layout} needs {size_text(price.reserved)} of "
        f"{size_text(price.capacity)}; recipe=pure and optimizer=adamw8bit hold less, and "
        "'situate fit' prices LoRA and other changes on one GPU"
    )


def comparison_table(model: Transformer, machine: str, prices: Sequence[Price]) -> RenderableType:
    """Layouts side by side, in this order."""
    name = f"{printable(model.name, 60)} on {printable(machine, 40)}"
    return Group(Text(name, "bold"), _layouts(prices))


def _layouts(prices: Sequence[Price]) -> Table:
    grid = table("", "layout|step|tokens/s/GPU|MFU|reserved|99 % below|limit", range(1, 6))
    for price in prices:
        grid.add_row(
            Text(str(price.run.layout)),
            time_text(price.seconds),
            f"{price.rate / price.devices:,.0f}",
            share_text(price.utilisation),
            size_text(price.reserved),
            size_text(price.high),
            price.limit,
        )
    return grid


def _shares_table(machine: Machine, shares: Sequence[Shares]) -> Table:
    """Divisions among unequal GPUs."""
    counts = Counter(gpu.name for gpu in machine.gpus)
    gpus = " + ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items())
    title = f"shares of {printable(gpus, 80)}"
    grid = table(title, "divided|shares|micro|recompute|step|against equal|memory", [2, 4])
    equal = {row.way: row.seconds for row in shares if row.equal}
    for row in shares:
        base = equal.get(row.way)
        gain = "equal shares do not fit" if base is None else f"{base / row.seconds:.2f} x"
        grid.add_row(
            row.way,
            ":".join(map(str, row.shares)),
            str(row.micro),
            row.recompute,
            time_text(row.seconds),
            "equal" if row.equal else gain,
            "fits" if row.sure else "may fit",
        )
    return grid


def tuning_table(
    model: Transformer, gpu: Gpu, roles: Mapping[str, float], changes: Sequence[Change]
) -> RenderableType:
    """Memory of a run on one GPU by role, and the changes with theirs."""
    need, high = sum(roles.values()), high_bytes(roles)
    verdict = _fit_word(need, high, gpu.memory, ("fits", "may fit", "does not fit"))
    title = f"{printable(model.name, 60)} on {printable(gpu.name, 40)}: {verdict}"
    sizes = f"{size_text(need)} of {size_text(gpu.memory)}, 99 of 100 runs below {size_text(high)}"
    grid = table("", "role|GiB", [1])
    for role, size in roles.items():
        if size >= MIN_BYTES:
            grid.add_row(role, f"{size / 2**30:,.2f}")
    other = table("with a change", "change|memory|99 % below|fits", [1, 2])
    for change in changes:
        fits = _fit_word(change.bytes, change.high, gpu.memory, ("yes", "maybe", "no"))
        other.add_row(change.name, size_text(change.bytes), size_text(change.high), fits)
    return Group(Text(title, "bold"), Text(sizes), grid, Text(), other)


def _fit_word(need: float, high: float, memory: float, words: tuple[str, str, str]) -> str:
    """The first word if 99 of 100 runs fit, the second if the prediction does, else the third."""
    sure, likely, no = words
    return sure if high <= memory else likely if need <= memory else no


def tuning_figures(
    gpu: Gpu, roles: Mapping[str, float], changes: Sequence[Change]
) -> dict[str, Any]:
    """The same figures as plain values, in bytes."""

    def figures(need: float, high: float) -> dict[str, Any]:
        fits = {"fits": high <= gpu.memory, "may_fit": need <= gpu.memory}
        return {"bytes": need, "high": high, **fits}

    return {
        "gpu": gpu.name,
        "capacity": gpu.memory,
        "memory": dict(roles),
        **figures(sum(roles.values()), high_bytes(roles)),
        "changes": [
            {"change": change.name, **figures(change.bytes, change.high)} for change in changes
        ],
    }


def shares_figures(row: Shares) -> dict[str, Any]:
    """A division among unequal GPUs as plain values."""
    return asdict(row)


def price_figures(price: Price) -> dict[str, Any]:
    """A price as plain values: seconds, bytes, tokens/s."""
    layout = price.run.layout
    names = (
        *("dp", "tp", "cp", "ep", "etp", "pp", "vp", "micro", "count", "zero", "shard", "sp"),
        *("recompute", "offload", "schedule"),
    )
    return {
        "layout": str(layout),
        "degrees": {name: getattr(layout, name) for name in names},
        "batch": layout.batch,
        "sequence": price.run.sequence,
        "recipe": price.run.recipe.name,
        "precision": price.run.recipe.precision,
        "optimizer": price.run.recipe.optimizer.name,
        "step_seconds": price.seconds,
        "relative_errors": {"median": price.errors[0], "p90": price.errors[1]},
        "tokens_per_second": price.rate,
        "tokens_per_second_gpu": price.rate / price.devices,
        "mfu": price.utilisation,
        "bubble": price.bubble,
        "limit": price.limit,
        "parts": price.parts,
        "memory": price.roles,
        "allocated": price.allocated,
        "reserved": price.reserved,
        "reserved_99_percent": price.high,
        "reserved_by_stage": list(price.stages),
        "capacity": price.capacity,
        "fits": price.fits,
        "may_fit": price.may_fit,
    }
