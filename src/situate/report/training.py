"""Prices of training layouts for the terminal and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from situate.language.training.pricing import Price
from situate.language.training.transformer import Transformer
from situate.report.tables import name_cell, table
from situate.report.text import plural, printable
from situate.report.units import count_text, share_text, size_text, time_text

MIN_SHARE = 0.01
"""Smaller shares of a step are left out."""

PART_NAMES = {
    "matrices": "matrix products",
    "grouped": "products of experts",
    "attention": "attention",
    "memory": "passes over memory",
    "launches": "waiting for launches",
    "tensor": "tensor parallelism",
    "context": "context parallelism",
    "experts": "exchange of experts",
    "pipeline": "messages of the pipeline",
    "data": "gradients and weights",
    "update": "update",
    "host": "update in host memory",
}
"""Parts of a step as tables call them."""


def price_table(
    model: Transformer, machine: str, price: Price, commands: Mapping[str, str]
) -> RenderableType:
    """The figures of one layout, its memory by role, and its launch commands."""
    grid = Table.grid(padding=(0, 2))
    for label, value in _facts(model, price):
        grid.add_row(Text(label, "dim"), Text(printable(value)))
    title = f"{printable(model.name, 60)} on {printable(machine, 40)}"
    launch = [Text(f"{name}: {text}") for name, text in commands.items()]
    return Group(Text(title, "bold"), grid, Text(), memory_table(price), Text(), *launch)


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
    yield "step time", f"{time_text(price.seconds)}, {_error(price.error)}"
    per_gpu = price.rate / price.devices
    yield "speed", f"{price.rate:,.0f} tokens/s, {per_gpu:,.0f} for each GPU"
    yield "MFU", share_text(price.utilisation)
    yield "time", ", ".join(_shares(price))
    if layout.pp > 1:
        yield "bubble", share_text(price.bubble)
    yield "limit", price.limit
    verdict = "fits" if price.fits else f"does not fit: {size_text(_missing(price))} too much"
    yield (
        "memory",
        f"{size_text(price.allocated)} allocated, {size_text(price.reserved)} reserved of "
        f"{size_text(price.capacity)}: {verdict}",
    )


def _missing(price: Price) -> float:
    return price.reserved - price.capacity


def _shares(price: Price) -> Iterator[str]:
    parts = sorted(price.parts.items(), key=lambda entry: -entry[1])
    for part, seconds in parts:
        if seconds >= MIN_SHARE * price.seconds:
            yield f"{share_text(seconds / price.seconds)} {PART_NAMES[part]}"


def _error(error: float) -> str:
    return f"± {100 * error:.0f} % in the median"


def memory_table(price: Price) -> Table:
    """Bytes of the fullest device by role."""
    grid = table("memory of the fullest GPU", "role|GiB", [1])
    for role, size in price.roles.items():
        if size:
            grid.add_row(role, f"{size / 2**30:,.2f}")
    return grid


def layouts_table(
    model: Transformer, machine: str, prices: Sequence[Price], tried: int
) -> RenderableType:
    """The best layouts, the fastest first."""
    title = f"{printable(model.name, 60)} on {printable(machine, 40)}: {tried:,} layouts"
    grid = table(title, "layout|step|tokens/s/GPU|MFU|reserved|limit", range(1, 5))
    for price in prices:
        layout = price.run.layout
        grid.add_row(
            name_cell(str(layout)),
            time_text(price.seconds),
            f"{price.rate / price.devices:,.0f}",
            share_text(price.utilisation),
            size_text(price.reserved),
            price.limit,
        )
    return grid


def price_figures(price: Price) -> dict[str, Any]:
    """A price as plain values: seconds, bytes, tokens/s."""
    layout = price.run.layout
    names = ("dp", "tp", "cp", "ep", "etp", "pp", "vp", "micro", "count", "zero", "sp")
    return {
        "layout": str(layout),
        "degrees": {name: getattr(layout, name) for name in (*names, "recompute", "offload")},
        "batch": layout.batch,
        "sequence": price.run.sequence,
        "recipe": price.run.recipe.name,
        "precision": price.run.recipe.precision,
        "optimizer": price.run.recipe.optimizer.name,
        "step_seconds": price.seconds,
        "relative_error": price.error,
        "tokens_per_second": price.rate,
        "tokens_per_second_gpu": price.rate / price.devices,
        "mfu": price.utilisation,
        "bubble": price.bubble,
        "limit": price.limit,
        "parts": price.parts,
        "memory": price.roles,
        "allocated": price.allocated,
        "reserved": price.reserved,
        "capacity": price.capacity,
        "fits": price.fits,
    }
