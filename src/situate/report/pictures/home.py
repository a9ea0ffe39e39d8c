"""A plan of a language model as one picture: each device's memory, and tokens/s."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from situate.errors import MissingExtra
from situate.files.atomic import write_bytes
from situate.language.layout import HOST
from situate.language.model import Role, Weight
from situate.language.planning.planner import HomePlan, Planner
from situate.report.pictures.formats import fitting, format_of, image
from situate.report.pictures.op_colors import GRID, INK, LIGHT, PALE, PALETTE
from situate.report.text import plural, printable
from situate.report.units import size_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, LANE, MARGIN_TOP, MARGIN_BOTTOM, MARGIN_LEFT, MARGIN_RIGHT = 11.0, 0.72, 0.95, 0.75, 1.9, 2.1
"""Inches of the picture: its width, a bar with its space, and the margins."""

DOTS_PER_INCH, TITLE, LABEL = 150, 13.0, 8.0
"""Dots, and sizes of letters in points."""

GROUPS: Mapping[Role, str] = {
    "attention": "attention",
    "recurrent": "attention",
    "experts": "experts",
    "embedding": "embedding and output",
    "output": "embedding and output",
}
"""Groups of weights by role; all other weights are of dense networks."""

DENSE = "dense networks"
PARTS = (
    *("attention", DENSE, "experts", "embedding and output", "draft", "cache"),
    *("compute buffer", "context", "margin"),
)
COLORS = dict(zip(PARTS, (*PALETTE[:5], PALETTE[5], PALETTE[7], "#9AA0A6", "#E8EAED"), strict=True))


def draw(planner: Planner, plan: HomePlan, path: str | Path) -> None:
    """Draw a plan into an SVG or PNG file, whichever the suffix of `path` says.

    Raises:
        SituateError: another suffix, or `path` cannot be written.
        MissingExtra: matplotlib is not installed.
    """
    form = format_of(path)
    write_bytes(path, render(planner, plan, form))


def render(planner: Planner, plan: HomePlan, form: str) -> bytes:
    """The picture as the bytes of an `svg` or `png` file.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    return image(_figure(planner, plan), form, DOTS_PER_INCH)


def device_parts(planner: Planner, plan: HomePlan) -> list[dict[str, float]]:
    """Bytes by part of each GPU, and of the host last; the keys are `PARTS`."""
    drafting = plan.work.drafting
    rows = []
    for processor, part, weights in zip(
        planner.home.processors, plan.memory, _weights(planner, plan), strict=True
    ):
        row = dict.fromkeys(PARTS, 0.0) | weights
        if drafting is not None:
            here = drafting.bytes if processor.name == drafting.device else 0
            beside = drafting.host_bytes if processor is planner.home.host else 0
            row["draft"] = float(here + beside)
        row["cache"] = float(part.cache)
        row["compute buffer"] = float(part.compute + part.output)
        row["context"], row["margin"] = float(part.context), float(part.margin)
        rows.append(row)
    return rows


def _weights(planner: Planner, plan: HomePlan) -> list[dict[str, float]]:
    """Bytes of weights by group, of each GPU and of the host last."""
    layout, model = plan.layout, planner.model
    sums: list[dict[str, float]] = [{} for _ in planner.home.processors]

    def add(weight: Weight, place: int) -> None:
        places = layout.order if layout.split == "tensor" and place != HOST else (place,)
        group = GROUPS.get(weight.role, DENSE)
        for device in places:
            sums[device][group] = sums[device].get(group, 0.0) + weight.size / len(places)

    moved = dict(layout.moved)
    for layer, place, experts in zip(model.layers, layout.layers, layout.experts, strict=True):
        for weight in layer.weights:
            home = experts if weight.role == "experts" else place
            add(weight, moved.get(weight.name, home))
    for weight in model.embedding:
        add(weight, HOST)
    for weight in (*model.output, *(model.embedding if model.tied else ())):
        # A tied matrix on the host is the embedding, which is there already.
        if weight.role != "embedding" or layout.output != HOST:
            add(weight, layout.output)
    return sums


def _figure(planner: Planner, plan: HomePlan) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "report") from None
    rows = device_parts(planner, plan)
    height = MARGIN_TOP + LANE * len(rows) + MARGIN_BOTTOM
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    axes = figure.add_axes(
        (
            MARGIN_LEFT / WIDTH,
            MARGIN_BOTTOM / height,
            1 - (MARGIN_LEFT + MARGIN_RIGHT) / WIDTH,
            LANE * len(rows) / height,
        )
    )
    for i, row in enumerate(rows):
        _bar(axes, planner, plan, i, row)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.axis("off")
    _headline(figure, planner, plan, height)
    _legend(figure, rows)
    return figure


def _bar(
    axes: Axes, planner: Planner, plan: HomePlan, number: int, row: Mapping[str, float]
) -> None:
    """One device: its memory is the whole width, or if it has no limit, the memory in use."""
    processor, used = planner.home.processors[number], sum(row.values())
    draft_bytes = row["draft"]
    limited = isfinite(processor.memory)
    memory = processor.memory + draft_bytes if limited else used
    scale, begin = max(memory, used, 1.0), 0.0
    for name, size in row.items():
        share = size / scale
        if share > 0:
            axes.barh(number, share, left=begin, height=0.6, color=COLORS[name], linewidth=0)
        points = share * (WIDTH - MARGIN_LEFT - MARGIN_RIGHT) * 72
        text = size_text(size)
        # A character is about 0.55 of the font's size wide.
        if len(text) * LABEL * 0.55 < points - 6:
            color = INK if COLORS[name] in {*LIGHT, "#E8EAED", "#9AA0A6"} else "white"
            axes.text(
                begin + share / 2, number, text, fontsize=LABEL, color=color, ha="center",
                va="center", parse_math=False,
            )  # fmt: skip
        begin += share
    axes.barh(
        number, memory / scale, height=0.6, fill=False, edgecolor=PALE, linewidth=0.8, zorder=4
    )
    free = memory - used
    state = f"{size_text(abs(free))} {'free' if free >= 0 else 'short'}" if limited else "no limit"
    lines = (
        (
            -0.02,
            "right",
            fitting(processor.name, 40, 10.0, MARGIN_LEFT * 72 - 20),
            _place(plan, number),
        ),
        (1.02, "left", f"{size_text(used)} in use", state),
    )
    for x, align, first, second in lines:
        for text, dy, size, color in ((first, -0.13, 10.0, INK), (second, 0.17, LABEL, PALE)):
            axes.text(
                x, number + dy, text, fontsize=size, color=color, ha=align, va="center",
                parse_math=False,
            )  # fmt: skip


def _place(plan: HomePlan, number: int) -> str:
    """The layers of a device in words."""
    layout = plan.layout
    device = HOST if number == len(plan.memory) - 1 else number
    if layout.split == "tensor" and device in layout.order:
        return f"1/{len(layout.order)} of each matrix"
    layers = [i for i, place in enumerate(layout.layers) if place == device]
    words = [f"layers {layers[0]}-{layers[-1]}"] if layers else []
    guests = sum(
        place != at == device for place, at in zip(layout.layers, layout.experts, strict=True)
    )
    words += [f"experts of {plural(guests, 'layer')}"] if guests else []
    words += ["output"] if layout.output == device else []
    return ", ".join(words) or ("embedding" if device == HOST else "not in use")


def _headline(figure: Figure, planner: Planner, plan: HomePlan, height: float) -> None:
    speed, work = plan.speed, plan.work
    title = f"{printable(planner.model.name, 60)} on {printable(planner.home.name, 40)}"
    guesses = f" with guesses of {printable(work.drafting.name, 30)}" if work.drafting else ""
    text = (
        f"{work.prompt / speed.prefill:,.0f} tokens/s of a prompt of {work.prompt:,}, "
        f"{1 / speed.decode:,.1f} tokens/s of a reply of {work.reply:,}{guesses}; "
        f"context {plan.options.context:,}, ubatch {plan.layout.ubatch}"
    )
    for y, line, size, weight, color in (
        (0.3, title, TITLE, "bold", INK), (0.58, text, 9.0, "normal", PALE),
    ):  # fmt: skip
        figure.text(
            0.02, 1 - y / height, line, fontsize=size, fontweight=weight, color=color,
            parse_math=False,
        )  # fmt: skip


def _legend(figure: Figure, rows: list[dict[str, float]]) -> None:
    from matplotlib.patches import Patch

    names = [name for name in PARTS if any(row[name] for row in rows)]
    patches = [Patch(color=COLORS[name], label=name) for name in names]
    patches.append(Patch(facecolor="white", edgecolor=GRID, label="free"))
    figure.legend(
        handles=patches, loc="lower center", ncols=len(patches), fontsize=LABEL, frameon=False
    )
