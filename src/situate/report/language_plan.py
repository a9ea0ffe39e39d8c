"""A plan of a language model for the terminal: devices, memory, speed, limits, and its command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from situate.language.expert_kinds import divided_layers, expert_kind, expert_places
from situate.language.layout import HOST
from situate.language.model import LanguageModel
from situate.language.planning.advice import Change
from situate.language.planning.fit_params import Comparison
from situate.language.planning.plan_file import language_plan
from situate.language.planning.planner import HomePlan, Planner
from situate.language.planning.workload import Drafting
from situate.language.speed import DECODE_ERROR, PREFILL_ERROR
from situate.report.tables import name_cell, table
from situate.report.text import plural, printable
from situate.report.units import gap_text, share_text, size_text, time_text

PER = 1000
"""Tokens by which growth is stated."""

MIN_SHARE = 0.05
"""Smaller shares of a phase are left out."""


@dataclass(frozen=True)
class Answer:
    """A plan with all that is said of it.

    Attributes:
        planner: with model and home.
        plan: its best plan.
        shares: of each phase's seconds, by the part that takes them.
        floor: seconds that no placement at all is below, None if unknown.
        better: changes of the home that help.
        idle: GPUs left out.
        command: to run the plan.
        decode_alone: seconds of a token of the best plan without a draft, None if unknown.
        engine: memory by llama.cpp itself, empty if it was not asked.
    """

    planner: Planner
    plan: HomePlan
    shares: Mapping[str, Mapping[str, float]]
    floor: float | None
    better: Sequence[Change]
    idle: Sequence[Change]
    command: str
    decode_alone: float | None = None
    engine: Sequence[Comparison] = ()


def plan_table(answer: Answer) -> RenderableType:
    """A plan, its memory and its command."""
    planner = answer.planner
    grid = Table.grid(padding=(0, 2))
    for label, value in _facts(answer):
        grid.add_row(Text(label, "dim"), Text(printable(value)))
    title = f"{printable(planner.model.name, 60)} on {printable(planner.home.name, 40)}"
    tables = [_memory(planner, answer.plan), *([_engine(answer.engine)] if answer.engine else [])]
    return Group(Text(title, "bold"), grid, Text(), *tables, Text(), Text(answer.command))


def _facts(answer: Answer) -> Iterator[tuple[str, str]]:
    planner, plan, shares = answer.planner, answer.plan, answer.shares
    work, speed, layout = plan.work, plan.speed, plan.layout
    yield (
        "request",
        (
            f"{time_text(speed.prefill + work.reply * speed.decode)} for {work.prompt:,} tokens "
            f"and a reply of {work.reply:,}"
        ),
    )
    yield "prefill", f"{_rate_text(work.prompt / speed.prefill)}, {_error(PREFILL_ERROR)}"
    yield (
        "decode",
        (f"{_rate_text(1 / speed.decode)} at a depth of {work.depth:,}, {_error(DECODE_ERROR)}"),
    )
    if work.drafting is not None:
        yield "draft", _draft_text(work.drafting, answer.decode_alone)
    if plan.gap is not None:
        mixture = any(layer.experts for layer in planner.model.layers)
        rest = "with whole experts" if mixture else "that flags can say"
        yield "gap", f"{gap_text(plan.gap)} to the best plan {rest}"
    if answer.floor is not None:
        times = plan.seconds / answer.floor
        yield "bound", f"no placement at all is more than {times:.2f} times as fast"
    yield "layers", _layers_text(planner, plan)
    yield (
        "settings",
        (
            f"ubatch {layout.ubatch}, cache {_cache_text(plan)}, op offload "
            f"{'on' if layout.op_offload else 'off'}, split by {layout.split}"
        ),
    )
    for phase, parts in shares.items():
        yield (
            f"{phase} time",
            ", ".join(
                f"{share_text(part)} {name}" for name, part in parts.items() if part >= MIN_SHARE
            ),
        )
    if full := _fullest(planner, plan):
        yield "memory limit", full
    for change in answer.idle:
        yield "left out", f"{change.name}: {_with(change)}"
    for change in answer.better:
        yield "would help", f"{change.name}: {change.gain:.2f} times as fast"


def _draft_text(drafting: Drafting, decode_alone: float | None) -> str:
    """A draft model with its device and memory, and the decoding without it."""
    size = f"{(drafting.bytes + drafting.host_bytes) / 2**20:,.0f} MiB"
    text = (
        f"{drafting.name} on {drafting.device}, {size}, {drafting.tokens} guesses of "
        f"{time_text(drafting.seconds)} each; with {share_text(drafting.acceptance)} of them right "
        f"a pass yields {drafting.tokens_a_pass:.2f} tokens"
    )
    return text if decode_alone is None else f"{text}; without it {_rate_text(1 / decode_alone)}"


def _with(change: Change) -> str:
    if change.gain > 1:
        return "no faster with it"
    return (
        f"with it a request takes {time_text(change.seconds)}, {1 / change.gain:.2f} times as long"
    )


def _rate_text(value: float) -> str:
    """Tokens a second."""
    return f"{value:,.1f} tokens/s" if value < 100 else f"{value:,.0f} tokens/s"


def _error(error: float) -> str:
    return f"± {100 * error:.0f} % in the median"


def _layers_text(planner: Planner, plan: HomePlan) -> str:
    """Runs of layers with their devices, and the layers whose experts are elsewhere."""
    names = [processor.name for processor in planner.home.processors]
    layers = plan.layout.layers
    parts = [
        f"{names[device]} {layers.index(device)}-{len(layers) - 1 - layers[::-1].index(device)}"
        for device in dict.fromkeys(layers)
    ]
    divided = divided_layers(plan.layout)
    away = [
        i
        for i, (place, other) in enumerate(zip(layers, plan.layout.experts, strict=True))
        if place != other and i not in divided
    ]
    if away:
        parts.append(f"experts of {plural(len(away), 'layer')} in host memory")
    for i in divided:
        places = expert_places(planner.model, plan.layout, i)
        kinds = sorted({expert_kind(weight.name) for weight, place in places if place == HOST})
        parts.append(f"{' and '.join(kinds)} experts of layer {i} in host memory")
    return ", ".join([*parts, f"output on {names[plan.layout.output]}"])


def _cache_text(plan: HomePlan) -> str:
    kinds = dict.fromkeys((plan.options.key_type.lower(), plan.options.value_type.lower()))
    return f"{'/'.join(kinds)} {'in host memory' if plan.layout.host_cache else 'with its layer'}"


def _fullest(planner: Planner, plan: HomePlan) -> str:
    """GPUs without room for another layer of the host's."""
    moved = (place for _, place in plan.layout.moved)
    if HOST not in (*plan.layout.layers, *plan.layout.experts, *moved):
        return ""
    names = [planner.home.accelerators[gpu].name for gpu in plan.layout.order]
    return f"{', '.join(names)}: no room for another layer from host memory" if names else ""


def _memory(planner: Planner, plan: HomePlan) -> Table:
    columns = "device|weights|cache|compute|context|margin|free|per 1,000 tokens"
    grid = table("memory", columns, range(1, 8))
    for processor, part, free in zip(planner.home.processors, plan.memory, plan.free, strict=True):
        sizes = (
            *(part.weights, part.cache, part.compute + part.output, part.context, part.margin),
            *(free, PER * part.per_token),
        )
        cells = ["-" if not size else _mib_text(size) for size in sizes]
        grid.add_row(name_cell(processor.name), *cells)
    return grid


def _engine(rows: Sequence[Comparison]) -> Table:
    """Weights, cache and compute buffers by both, with logits of a whole ubatch."""
    grid = table("memory by llama-fit-params", "device|situate|llama.cpp|difference", range(1, 4))
    for row in rows:
        sizes = (row.predicted, row.printed, row.difference)
        grid.add_row(name_cell(row.device), *(_mib_text(size) for size in sizes))
    return grid


def _mib_text(size: float) -> str:
    """Bytes in MiB, as llama.cpp prints them."""
    return f"{size / 2**20:,.0f} MiB" if abs(size) < 2**60 else "unlimited"


def comparison_table(planner: Planner, rows: Sequence[tuple[str, HomePlan]]) -> RenderableType:
    """Layouts side by side, the fastest first; layouts that do not fit come last."""
    grid = table(
        f"{printable(planner.model.name, 60)} on {printable(planner.home.name, 40)}",
        "layout|request|prefill|decode|ubatch|fits|against the best",
        range(1, 5),
    )
    ordered = sorted(rows, key=lambda row: (not row[1].feasible, row[1].seconds))
    best = ordered[0][1].seconds
    for name, plan in ordered:
        speed, work = plan.speed, plan.work
        grid.add_row(
            name_cell(name),
            time_text(speed.prefill + work.reply * speed.decode),
            _rate_text(work.prompt / speed.prefill),
            _rate_text(1 / speed.decode),
            str(plan.layout.ubatch),
            "yes" if plan.feasible else f"no: {_short(planner, plan)}",
            "best" if plan is ordered[0][1] else f"{plan.seconds / best:.2f} times as long",
        )
    return grid


def _short(planner: Planner, plan: HomePlan) -> str:
    """The devices without enough memory."""
    return ", ".join(
        f"{processor.name} lacks {size_text(-free)}"
        for processor, part, free in zip(
            planner.home.processors, plan.memory, plan.free, strict=True
        )
        if free < 0 and (part.total or part.margin)
    )


def plan_figures(answer: Answer) -> dict[str, Any]:
    """The same figures as plain values; sizes in bytes, times in seconds."""
    planner, plan, decode_alone = answer.planner, answer.plan, answer.decode_alone
    return row_figures(planner.model, planner, plan) | {
        "gap": plan.gap,
        "floor_seconds": answer.floor,
        "shares": answer.shares,
        "would_help": [asdict(change) for change in answer.better],
        "left_out": [asdict(change) for change in answer.idle],
        "command": answer.command,
        "decode_tokens_per_second_without_draft": decode_alone and 1 / decode_alone,
        "llama_fit_params": [asdict(row) for row in answer.engine],
    }


def row_figures(model: LanguageModel, planner: Planner, plan: HomePlan) -> dict[str, Any]:
    """A plan's file with its rates."""
    import msgspec

    content: dict[str, Any] = msgspec.to_builtins(language_plan(plan, model, planner.home))
    return content | {
        "feasible": plan.feasible,
        "seconds": plan.seconds,
        "prefill_tokens_per_second": plan.work.prompt / plan.speed.prefill,
        "decode_tokens_per_second": 1 / plan.speed.decode,
        "notes": plan.notes,
    }
