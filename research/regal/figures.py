"""Pictures of research/regal.md from the records: Fig. 2, 3, 4 and 12 of REGAL.

A picture is drawn of every record that is there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.lib.record import read_record
from research import IMAGES, RESULTS
from research.papers.curves import GRID, INK, PALE, svg
from research.regal.compared import REFERENCE
from research.regal.published import IN_PAPER_SETTINGS
from research.regal.tables import Content, in_paper_settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BETTER, WORSE = "#006B1B", "#AA3377"
LINES = ("#4477AA", "#EE7733", "#006B1B", "#AA3377", "#66CCEE", "#777777")
"""Tol's qualitative colours, as in situate's pictures."""

BINS = 24
ON_THE_PAGE = (
    *("regal_improvements_synthetic_time", "regal_improvements_real_time"),
    *("regal_improvements_real_memory", "regal_evaluations_synthetic_time"),
    *("regal_evaluations_real_time", "regal_entropies_real_time", "regal_trainings"),
)
"""Pictures on the page; its tables have the numbers of the others."""


def main(arguments: list[str] | None = None) -> None:
    """Draw research/images/regal_FIGURE_SET.svg of the page, or of every record."""
    import matplotlib
    from matplotlib.figure import Figure

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--images", type=Path, default=IMAGES, metavar="FOLDER")
    parser.add_argument("--all", action="store_true", help="also those that the page leaves out")
    options = parser.parse_args(arguments)
    for name, content, draw in drawings(options.results):
        if not options.all and name not in ON_THE_PAGE:
            continue
        figure = Figure(figsize=(5.6, 3.2), layout="constrained")
        axes = figure.subplots()
        draw(axes, content)
        _frame(axes)
        path = options.images / f"{name}.svg"
        with matplotlib.rc_context({"svg.hashsalt": "situate"}):
            path.write_bytes(svg(figure))
        print(path)


Draw = Callable[["Axes", Content], None]


def drawings(results: Path) -> Iterator[tuple[str, Content, Draw]]:
    """By picture, its name, its record, and the function that draws it."""
    for path in sorted(results.glob("regal_*.json")):
        content = read_record(path)
        name, tables = content["options"].get("name", ""), content["tables"]
        if "methods" in tables:
            yield from _compared(path.stem.removeprefix("regal_"), content)
        elif path.stem.startswith("regal_actions_") and "graphs" in tables:
            yield f"regal_entropies_{name}", content, entropies
        elif path.stem.startswith("regal_rounds_"):
            yield f"regal_rounds_{name}", content, rounds
        elif "trainings" in tables:
            yield "regal_trainings", content, trainings
        elif "topologies" in tables:
            yield f"regal_topologies_{name}", content, topologies


def _compared(record: str, content: Content) -> Iterator[tuple[str, Content, Draw]]:
    """Fig. 2 and Fig. 3 of a comparison of methods."""
    if record.endswith(IN_PAPER_SETTINGS):
        content = in_paper_settings(content)
    yield f"regal_improvements_{record}", content, improvements
    if len(content["tables"]["evaluations"]) > 1:
        yield f"regal_evaluations_{record}", content, evaluations


def improvements(axes: Axes, content: Content) -> None:
    """Fig. 2: a histogram of the first `regal`'s improvements by graph, ties left out."""
    row = next(row for row in content["tables"]["methods"] if row["method"].startswith("regal"))
    reference = row.get("same_decoder", REFERENCE)
    graphs = content["tables"]["graphs"]
    gained = np.array([100 * (1 - of[row["method"]] / of[reference]) for of in graphs])
    edges = np.linspace(min(0.0, gained.min()), max(0.0, gained.max()), BINS + 1).tolist()
    for part, colour in ((gained[gained > 0], BETTER), (gained[gained < 0], WORSE)):
        axes.hist(part, edges, color=colour)
    axes.locator_params("y", integer=True)
    _label(axes, f"improvement of {row['method']} over {reference} [%]", "graphs")


def evaluations(axes: Axes, content: Content) -> None:
    """Fig. 3: improvements by evaluations."""
    rows = content["tables"]["evaluations"]
    labels = [column.removesuffix(", %") for column in rows[0] if column.endswith(", %")]
    at = [row["evaluations"] for row in rows]
    for label, colour in zip(labels, LINES, strict=False):
        values = np.array([row[f"{label}, %"] for row in rows])
        half = np.array([row.get(f"{label}, ±", 0.0) for row in rows])
        axes.plot(at, values, color=colour, marker="o", markersize=3, linewidth=1.3, label=label)
        axes.fill_between(at, values - half, values + half, color=colour, alpha=0.18, linewidth=0)
    axes.set_xscale("log")
    axes.legend(frameon=False, fontsize=8)
    _label(axes, "evaluations", "improvement over BRKGA 5K [%]")


def trainings(axes: Axes, content: Content) -> None:
    """Improvements in validation by steps, a line for each training."""
    by_training: dict[str, list[tuple[int, float]]] = {}
    for row in content["tables"]["curves"]:
        point = (row["steps"], row["improvement_%"])
        by_training.setdefault(row["training"], []).append(point)
    for (label, points), colour in zip(by_training.items(), LINES, strict=False):
        axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.0, label=label)
    axes.legend(frameon=False, fontsize=8)
    _label(axes, "steps of training", "improvement over BRKGA 5K in validation [%]")


def entropies(axes: Axes, content: Content) -> None:
    """Fig. 4a: a histogram of entropies over graphs."""
    rows = content["tables"]["graphs"]
    kinds = [column for column in rows[0] if column != "graph"]
    values = [[row[kind] for row in rows] for kind in kinds]
    axes.hist(values, BINS, color=LINES[: len(kinds)], label=kinds)
    axes.legend(frameon=False, fontsize=8)
    _label(axes, "entropy of choices [nats]", "graphs")


def rounds(axes: Axes, content: Content) -> None:
    """Fig. 4b: the best reward in validation by the rounds of message passing."""
    rows = content["tables"]["variants"]
    at = [int(row["variant"]) for row in rows]
    for column, style in (("best_reward", "-"), ("mean_best_reward", "--")):
        values = [row[column] for row in rows]
        label = column.replace("_", " ")
        axes.plot(at, values, style, color=LINES[0], marker="o", markersize=3, label=label)
    axes.legend(frameon=False, fontsize=8)
    _label(axes, "rounds of message passing, T", "reward")


def topologies(axes: Axes, content: Content) -> None:
    """Fig. 12: rewards of each topology and its copies."""
    boxes = [_box(row) for row in content["tables"]["topologies"]]
    axes.bxp(boxes, showfliers=False, widths=0.6, medianprops={"color": BETTER})
    axes.axhline(-1, color=INK, linewidth=0.8, linestyle=(0, (6, 2)))
    axes.set_xticks([])
    _label(axes, f"{len(boxes)} topologies, by their medians", "reward")


def _box(row: Mapping[str, float]) -> dict[str, float]:
    """The row as matplotlib reads it."""
    names = {
        "whislo": "least", "q1": "lower_quartile", "med": "median", "q3": "upper_quartile",
        "whishi": "most",
    }  # fmt: skip
    return {theirs: row[ours] for theirs, ours in names.items()}


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=8.5, color=PALE)
    axes.set_ylabel(y, fontsize=8.5, color=PALE)


def _frame(axes: Axes) -> None:
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=8, colors=PALE)
    for side in axes.spines.values():
        side.set_visible(False)


if __name__ == "__main__":
    main()
