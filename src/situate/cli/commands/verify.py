"""`situate verify`: whether a plan's step computes what the unplaced model does."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli.options import (
    Costs,
    Json,
    PlanCluster,
    PlanFile,
    PlannedOptimizer,
    Runnable,
    Seed,
    not_negative,
)

if TYPE_CHECKING:
    from situate.data.graph import Graph
    from situate.runtime.hardware import RealDevice

TOLERANCE, SHORT_TOLERANCE = 1e-4, 1e-2
"""Where the placed step's kernels are not those of the unplaced one, and where these compute in 16
bits too; float32 has 1e-7, bfloat16 8e-3."""


def verify(
    model: Runnable = None,
    plan: PlanFile = None,
    cluster: PlanCluster = None,
    costs: Costs = None,
    steps: Annotated[int, typer.Option(min=1, max=10**6, help="Steps to compare.")] = 3,
    tolerance: Annotated[
        float | None,
        typer.Option(
            callback=not_negative,
            help="The largest difference that passes, |a - b| / max(1, |a|). Default: 0 where all "
            "devices are CPUs with equally many threads, no GRU runs, no LSTM trains, no "
            "nn.MultiheadAttention or nn.TransformerEncoderLayer infers and transformers repeats "
            "no keys for a mask and leaves no mask out under autocast, else "
            f"{TOLERANCE:g}, or {SHORT_TOLERANCE:g} with numbers of 16 bits.",
        ),
    ] = None,
    seed: Seed = 0,
    optimizer: PlannedOptimizer = None,
    as_json: Json = False,
) -> int:
    """Check that a plan's step gives the losses and parameters that the model gives without it.

    Both start from the same weights, inputs and random numbers. Exit status 4 where they differ.
    A step of slices is also compared with the step of the whole batch, and a line says how the two
    differ, and why; exit status 4 where nothing explains it.
    """
    from situate.cli.answer import print_json, print_table
    from situate.cli.load_plan import load_plan
    from situate.cli.terminal import DIFFERS, working
    from situate.report.batch_difference import batch_figures, batch_text, is_unexplained
    from situate.report.measured_run import equality_figures, equality_table
    from situate.runtime.equality import compare
    from situate.runtime.whole_batch import compare_with_batch

    loaded = load_plan(model, plan, cluster, costs, optimizer, seed)
    prepared = loaded.prepared
    used = [prepared.devices[d] for d in prepared.placed.used]
    name = prepared.problem.graph.name
    graph, batch = prepared.problem.graph, None
    if graph.slices is not None:
        with working(f"running {name} in one batch"), contextlib.redirect_stdout(sys.stderr):
            batch = compare_with_batch(
                loaded.model,
                loaded.inputs,
                loaded.loss,
                graph.slices,
                seed=seed,
                threads=_threads(used),
                name=name,
                named_devices=prepared.placed.program.named_devices,
            )
    with working(f"running {name} placed and unplaced"), contextlib.redirect_stdout(sys.stderr):
        found = compare(
            loaded.model,
            loaded.inputs,
            loaded.loss,
            loaded.optimizer if loaded.rule else None,
            loaded.step,
            steps=steps,
            clip=loaded.rule.clip if loaded.rule else None,
            seed=seed,
            threads=_threads(used),
            name=name,
            named_devices=prepared.placed.program.named_devices,
            slices=prepared.problem.graph.slices,
        )
    passing, why = _tolerance(tolerance, used, found.decomposed, graph)
    if as_json:
        figures = equality_figures(found, passing)
        if batch is not None:
            figures |= batch_figures(batch, graph.warnings)
        print_json(figures | {"graph": name})
    else:
        print_table(equality_table(found, name, passing, why))
        if batch is not None:
            print_table(batch_text(batch, graph.warnings))
    unexplained = batch is not None and is_unexplained(batch, graph.warnings)
    return DIFFERS if unexplained or not found.within(passing) else 0


def _threads(used: Collection[RealDevice]) -> int | None:
    """Threads of the unplaced step, which CPUs run; None leaves them as they are."""
    counts = (device.threads or 0 for device in used if device.torch == "cpu")
    return max(counts, default=0) or None


def _tolerance(
    option: float | None, used: Collection[RealDevice], apart: Sequence[str], graph: Graph
) -> tuple[float, str]:
    """The largest difference that passes, and the reason for it."""
    threads = {device.threads for device in used}
    is_short = any(op.dtype in ("bfloat16", "float16") for op in graph.ops)
    rounding = SHORT_TOLERANCE if is_short else TOLERANCE
    if option is not None:
        return option, "as given"
    if any(device.torch != "cpu" for device in used):
        return rounding, "not all devices are CPUs, and others add in another order"
    if len(threads) > 1:
        return rounding, "the devices have unequal threads, which add in another order"
    if apart:
        return rounding, f"captured as other ops, which round otherwise: {', '.join(apart)}"
    count = next(iter(threads))
    have = f" with {count} thread{'s' * (count > 1)} each" if count else ""
    return 0.0, f"all devices are CPUs{have}, and the unplaced step has as many threads"
