"""`python -m benchmarks.layouts.steps CELLS.csv [--record]`: layouts planned as graphs.

Published runs with pipelines are predicted twice, by formulas and by simulated graphs, with factors
fitted to runs of other models. `LAYOUTS` are simulated and searched.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.layouts.cells import Cell
from benchmarks.layouts.seconds import (
    GROUPS,
    Floats,
    Runs,
    cells_and_options,
    fit,
    publish,
    runs_of,
)
from benchmarks.lib.record import Row as RecordRow
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.language.training.layout import LayoutTable, Run
from situate.language.training.layout_text import parse_layout
from situate.language.training.pricing import price
from situate.language.training.seconds import step_seconds
from situate.language.training.software import PARTS, Pace
from situate.language.training.steps.division import equal_division
from situate.language.training.steps.graph import StepGraph, step_graph
from situate.language.training.steps.representatives import representatives
from situate.language.training.steps.site import Site, find_site
from situate.language.training.transformer import Transformer, parse_sizes
from situate.simulation.decoding import decode
from situate.solvers.starts import plan_from

SAMPLE = 150
"""Runs of a source at most, drawn once."""

SEARCH_SECONDS = 5.0

LLAMA_8B = "layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=128256"
LLAMA_70B = "layers=80,hidden=8192,heads=64,kv=8,ffn=28672,vocab=128256"
MIXTRAL = "layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=32000,experts=8"

LAYOUTS = (
    ("Llama 3 8B", LLAMA_8B, "h100-2x8", "dp=2,tp=4,pp=2,batch=32,recompute=selective"),
    ("Llama 3 8B", LLAMA_8B, "h100-2x8", "dp=2,pp=8,batch=64"),
    ("Llama 3 8B", LLAMA_8B, "h100-2x8", "dp=2,pp=8,vp=2,batch=64"),
    ("Llama 3 8B", LLAMA_8B, "h100-2x8", "dp=2,pp=8,batch=64,schedule=zero-bubble"),
    ("Llama 3 8B", LLAMA_8B, "h100-2x8", "dp=2,pp=8,batch=64,schedule=zero-bubble-h2"),
    ("Llama 3 8B", LLAMA_8B, "h100-2x8", "dp=2,pp=8,batch=64,schedule=zero-bubble-v"),
    ("Llama 3 8B", LLAMA_8B, "h100-2x8", "dp=2,tp=2,cp=4,batch=16,seq=32768"),
    ("Llama 3 8B", LLAMA_8B, "h100-2x8", "dp=8,pp=2,batch=64"),
    ("Llama 3 8B", LLAMA_8B, "h100-2x8", "dp=4,tp=2,pp=2,batch=64,zero=0"),
    ("Llama 3 8B", LLAMA_8B, "h100-2x8", "dp=16,batch=64,recipe=fsdp2"),
    ("Mixtral 8x7B", MIXTRAL, "h100-2x8", "dp=8,pp=2,ep=8,batch=64,recompute=full"),
    ("Llama 3 70B", LLAMA_70B, "8x8xH100", "dp=2,tp=8,pp=4,batch=64,recompute=selective"),
    ("Llama 3 70B", LLAMA_70B, "8x8xH100", "dp=16,tp=4,batch=64,recompute=full,recipe=fsdp2"),
)
"""Layouts: name and sizes of the model, cluster, layout."""


def graph_of(cell: Cell) -> tuple[StepGraph, Site]:
    """The step of a run, on the fewest GPUs that stand for all.

    Raises:
        SituateError: it has too many ops.
    """
    division = equal_division(cell.model, cell.run.layout)
    site, part = representatives(cell.machine, division)
    return step_graph(cell.model, cell.run, site, part), site


def simulated_seconds(cell: Cell) -> float:
    """Seconds of a run's step in the order of its program.

    Raises:
        SituateError: it has too many ops.
    """
    step, site = graph_of(cell)
    problem = Problem(step.graph, site.cluster)
    return float(decode(problem, step.placement, step.order, "serial").makespan)


def formula_seconds(cell: Cell) -> float:
    """Seconds of a run's step by the formulas."""
    table = LayoutTable.of([cell.run.layout])
    parts = step_seconds(cell.model, cell.run, cell.machine, table)
    return sum(float(part[0]) for part in parts.values())


def with_factors(cell: Cell, factors: Floats) -> Cell:
    """The run with these factors of its program's parts."""
    pace = Pace(dict(zip(PARTS, factors.tolist(), strict=True)))
    software = replace(cell.run.recipe.software, pace=pace)
    recipe = replace(cell.run.recipe, software=software)
    return replace(cell, run=replace(cell.run, recipe=recipe))


def pipelines(cells: Sequence[Cell]) -> list[Cell]:
    """Timed runs with pipelines, at most `SAMPLE` of each source."""
    result: list[Cell] = []
    for source in sorted({cell.source for cell in cells}):
        timed = [
            cell
            for cell in cells
            if cell.source == source and cell.run.layout.pp > 1 and cell.seconds
        ]
        order = np.random.default_rng(0).permutation(len(timed))[:SAMPLE]
        result += [timed[i] for i in sorted(order.tolist())]
    return result


def published_rows(cells: Sequence[Cell]) -> list[RecordRow]:
    """Runs of all programs with both predictions, each by factors of other models."""
    rows: list[RecordRow] = []
    for programs in GROUPS.values():
        inside = [
            cell
            for cell in cells
            if cell.run.recipe.software.name in programs and cell.source != "Megatron tests"
        ]
        if any(cell.seconds for cell in inside):
            rows += _rows_of_program(runs_of(inside))
    return rows


def _rows_of_program(runs: Runs) -> list[RecordRow]:
    rows: list[RecordRow] = []
    families = np.array([cell.family for cell in runs.cells])
    factors: dict[str, Floats] = {}
    for cell in pipelines(runs.cells):
        if cell.family not in factors:
            others = families != cell.family
            factors[cell.family] = fit(runs.of(others)) if others.any() else np.ones(len(PARTS))
        fitted = with_factors(cell, factors[cell.family])
        try:
            simulated = simulated_seconds(fitted)
        except SituateError:
            continue
        rows.append(
            {
                "source": cell.source,
                "layout": str(cell.run.layout),
                "seconds": cell.seconds,
                "formulas": formula_seconds(fitted),
                "simulated": simulated,
            }
        )
    return rows


def summary(rows: Sequence[RecordRow]) -> list[RecordRow]:
    """Errors of both predictions by source."""
    result: list[RecordRow] = []
    for source in (*sorted({str(row["source"]) for row in rows}), "all"):
        chosen = [row for row in rows if source in ("all", row["source"])]
        errors = {
            kind: np.abs([float(str(row[kind])) / float(str(row["seconds"])) - 1 for row in chosen])
            for kind in ("formulas", "simulated")
        }
        result.append(
            {"source": source, "runs": len(chosen)}
            | {f"{kind}_error": float(np.median(error)) for kind, error in errors.items()}
            | {f"{kind}_p90": float(np.quantile(error, 0.9)) for kind, error in errors.items()}
        )
    return result


def planned_row(name: str, sizes: str, cluster: str, text: str) -> RecordRow:
    """A layout by formulas, simulated and searched, with the CPU seconds of building and of
    simulating, verifying and bounding."""
    model, site = parse_sizes(sizes), find_site(cluster)
    run = parse_layout(text, model, site.machine.count)
    figures = price(model, run, site.machine)
    begin = _cpu_seconds()
    step = step_graph(model, run, site, equal_division(model, run.layout))
    problem = Problem(step.graph, site.cluster)
    start = plan_from(problem, step.placement, step.order)
    cpu = _cpu_seconds() - begin
    plan = plan_from(problem, step.placement, step.order, time_limit=SEARCH_SECONDS)
    ops, seconds, peak = _on_representatives(model, run, site)
    return {
        "model": name,
        "cluster": cluster,
        "layout": text,
        "ops": problem.n,
        "formulas": figures.seconds,
        "simulated": start.start.makespan,
        "gap": start.gap,
        "searched": plan.result.makespan,
        "searched_gap": plan.gap,
        "formulas_gib": (figures.allocated + figures.roles["communication"]) / 2**30,
        "simulated_gib": float(start.start.peak.max()) / 2**30,
        "cpu_seconds": cpu,
        "part_ops": ops,
        "part_seconds_ratio": seconds / start.start.makespan,
        "part_peak_ratio": peak / float(start.start.peak.max()),
    }


def _on_representatives(model: Transformer, run: Run, site: Site) -> tuple[int, float, float]:
    """Ops, seconds and bytes of a step on the fewest devices that stand for all."""
    part_site, part = representatives(site.machine, equal_division(model, run.layout))
    step = step_graph(model, run, part_site, part)
    problem = Problem(step.graph, part_site.cluster)
    schedule = decode(problem, step.placement, step.order, "serial")
    return problem.n, float(schedule.makespan), float(schedule.peak.max())


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def main() -> None:
    """Print and record both tables."""
    cells, _, options = cells_and_options(__doc__)
    tables = {
        "published": summary(published_rows(cells)),
        "planned": [planned_row(*layout) for layout in LAYOUTS],
    }
    publish("layout_steps", tables, options)


if __name__ == "__main__":
    main()
