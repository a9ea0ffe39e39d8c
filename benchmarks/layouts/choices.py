"""`python -m benchmarks.layouts.choices CELLS.csv [--record]`: places of the best published ones.

A question is a model on some GPUs with a batch, a sequence and a precision. Its published runs
differ in their layouts. Two tables say where the predictions put the fastest layout: among the
published ones, and among all legal ones that fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.layouts.cells import Cell
from benchmarks.layouts.seconds import GROUPS, Floats, cells_and_options, crossed, publish, runs_of
from benchmarks.lib.record import Row as RecordRow
from situate.language.training.layout import Layout, LayoutTable
from situate.language.training.memory import peak_memory
from situate.language.training.pricing import Price
from situate.language.training.search import search
from situate.language.training.seconds import step_seconds

FIRST = 3
"""Places that a user tries."""

LARGE = 4
"""Fewest layouts of a question whose first three places say something."""

GPUS = 32
"""Fewest GPUs of a question that is asked of all layouts."""

DIVISIONS = 1000
"""Divisions of the devices that a place is counted in."""

DEGREES = ("dp", "tp", "cp", "ep", "pp")
"""Degrees of a division of the devices."""

ABILITIES: dict[str, Callable[[Layout], bool]] = {
    # FSDP alone.
    "composer": lambda layout: layout.tp * layout.cp * layout.pp == 1,
    # Before the distributed optimiser and context parallelism.
    "megatron-2021": lambda layout: layout.cp == 1 and layout.zero == 0,
}
"""Divisions that a program can run, where it cannot run all, by its name."""


@dataclass(frozen=True)
class Question:
    """A model on some GPUs, with the layouts that a source publishes for it.

    Attributes:
        source: of the runs.
        name: of the GPU and the model.
        gpus, sequence, batch, precision: of all runs.
        cells: one run of each layout.
        seconds: (layouts,) medians of the measured seconds of each layout.
        predicted: (layouts,) seconds.
    """

    source: str
    name: str
    gpus: int
    sequence: int
    batch: int
    precision: str
    cells: tuple[Cell, ...]
    seconds: Floats
    predicted: Floats

    @property
    def fastest(self) -> int:
        """Number of the layout that was measured to be the fastest."""
        return int(np.argmin(self.seconds))

    @property
    def place(self) -> int:
        """Place of the fastest layout by predicted seconds, from 1."""
        return 1 + int((self.predicted < self.predicted[self.fastest]).sum())

    @property
    def regret(self) -> float:
        """Measured seconds of the predicted best over those of the fastest, less 1."""
        return float(self.seconds[np.argmin(self.predicted)] / self.seconds.min() - 1)

    @property
    def labels(self) -> RecordRow:
        """The question as columns of a table."""
        names = ("source", "name", "gpus", "sequence", "batch", "precision")
        return {key: getattr(self, key) for key in names}


def questions_of(cells: Sequence[Cell], predicted: Floats) -> list[Question]:
    """The questions of these runs.

    Args:
        cells: with times.
        predicted: (runs,) seconds, by factors of other models' runs.
    """
    runs: dict[tuple[str | int, ...], dict[str, list[tuple[Cell, float]]]] = {}
    for cell, seconds in zip(cells, predicted.tolist(), strict=True):
        layouts = runs.setdefault(_key(cell), {})
        layouts.setdefault(str(cell.run.layout), []).append((cell, seconds))
    return [_question(list(layouts.values())) for layouts in runs.values()]


def _key(cell: Cell) -> tuple[str | int, ...]:
    """Equal for runs of one question."""
    run = cell.run
    size = (run.layout.devices, run.sequence, run.layout.batch)
    return cell.source, cell.family, *size, run.recipe.precision


def _question(layouts: Sequence[Sequence[tuple[Cell, float]]]) -> Question:
    """The question of runs of several layouts, each run with its predicted seconds."""
    cell = layouts[0][0][0]
    return Question(
        cell.source,
        cell.family,
        cell.run.layout.devices,
        cell.run.sequence,
        cell.run.layout.batch,
        cell.run.recipe.precision,
        tuple(runs[0][0] for runs in layouts),
        np.array([np.median([float(cell.seconds or 0) for cell, _ in runs]) for runs in layouts]),
        np.array([np.median([seconds for _, seconds in runs]) for runs in layouts]),
    )


def summary(questions: Sequence[Question]) -> RecordRow:
    """How often the fastest published layout is among the first, and what a wrong first costs."""
    regret = np.array([question.regret for question in questions])
    large = [question for question in questions if len(question.cells) >= LARGE]
    near = [question.place <= FIRST for question in large]
    chance = [FIRST / len(question.cells) for question in large]
    return {
        "questions": len(questions),
        "layouts": sum(len(question.cells) for question in questions),
        "first": float(np.mean([question.place == 1 for question in questions])),
        "large_questions": len(large),
        "among_three": float(np.mean(near)) if large else None,
        "among_three_by_chance": float(np.mean(chance)) if large else None,
        "median_regret": float(np.median(regret)),
        "p90_regret": float(np.quantile(regret, 0.9)),
        "largest_regret": float(regret.max()),
    }


def published_row(question: Question) -> RecordRow:
    """The place of the fastest layout among the published ones."""
    return question.labels | {
        "layouts": len(question.cells),
        "fastest": str(question.cells[question.fastest].run.layout),
        "place": question.place,
        "regret": question.regret,
    }


def searched_row(question: Question) -> RecordRow:
    """The place of the fastest published layout's division among all divisions that fit.

    The division has the seconds of the published layout, which fitted, or those of a faster one
    with other micro-batches, chunks or recomputation.
    """
    cell = question.cells[question.fastest]
    model, run, machine = cell.model, cell.run, cell.machine
    table = LayoutTable.of([run.layout])
    seconds = float(np.sum([*step_seconds(model, run, machine, table).values()]))
    reserved = float(peak_memory(model, run, table).reserved[0])
    prices = search(model, run, machine, run.layout.batch, DIVISIONS).best
    can_run = ABILITIES.get(run.recipe.software.name)
    best = fastest_by_division([p for p in prices if can_run is None or can_run(p.run.layout)])
    first = min(best.values(), key=lambda price: price.seconds)
    return question.labels | {
        "fastest": str(run.layout),
        "divisions": len(best.keys() | {_division(run.layout)}),
        "place": place_of_division(run.layout, seconds, best),
        "first": str(first.run.layout),
        "measured": float(question.seconds.min()),
        "predicted": seconds,
        "predicted_first": first.seconds,
        "memory_share": reserved / machine.weakest.memory,
    }


def searched_rows(questions: Sequence[Question]) -> list[RecordRow]:
    """Places among all layouts, for questions of many GPUs and programs with several divisions.

    vTrain's runs go through all layouts of few GPUs by themselves.
    """
    large = [q for q in questions if q.gpus >= GPUS and q.source != "vTrain"]
    return [row for row in map(searched_row, large) if row["divisions"] > 1]


def fastest_by_division(prices: Sequence[Price]) -> dict[tuple[int, ...], Price]:
    """The fastest price of each division."""
    best: dict[tuple[int, ...], Price] = {}
    for price in sorted(prices, key=lambda price: price.seconds):
        best.setdefault(_division(price.run.layout), price)
    return best


def place_of_division(layout: Layout, seconds: float, best: Mapping[tuple[int, ...], Price]) -> int:
    """Place of a layout's division, from 1.

    Args:
        layout: the layout.
        seconds: predicted for it.
        best: the fastest layout of each division that fits.
    """
    division = _division(layout)
    own = min(seconds, best[division].seconds) if division in best else seconds
    return 1 + sum(price.seconds < own for price in best.values())


def _division(layout: Layout) -> tuple[int, ...]:
    return tuple(getattr(layout, degree) for degree in DEGREES)


def all_questions(cells: Sequence[Cell]) -> list[Question]:
    """The questions of all programs, each run predicted by factors of other models' runs."""
    questions = []
    for programs in GROUPS.values():
        inside = [
            cell
            for cell in cells
            if cell.seconds
            and cell.run.recipe.software.name in programs
            and cell.source != "Megatron tests"
        ]
        if inside:
            runs = runs_of(inside)
            ratio = crossed(runs, lambda cell: cell.family)
            questions += questions_of(runs.cells, runs.seconds * ratio)
    return questions


def main() -> None:
    """Print and record the places of the fastest published layouts."""
    cells, _, options = cells_and_options(__doc__)
    questions = all_questions(cells)
    several = [question for question in questions if len(question.cells) > 1]
    sources = sorted({question.source for question in several})
    tables: dict[str, list[RecordRow]] = {
        "summary": [
            {"source": source, **summary([q for q in several if q.source == source])}
            for source in sources
        ],
        "published": [published_row(question) for question in several],
        "all layouts": searched_rows(questions),
    }
    publish("layout_choices", tables, options)


if __name__ == "__main__":
    main()
