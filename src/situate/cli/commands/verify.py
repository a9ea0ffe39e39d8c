"""`situate verify`: a plan's step against the step of the unplaced model."""

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
"""Largest differences if the steps run different kernels, and if these compute in 16 bits. The
precision of float32 is 1e-7, that of bfloat16 8e-3."""


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
    """Check that a plan's step computes the same losses and parameters as the unplaced model.

    Both start from the same weights, inputs and random numbers. Exit status 4 if they differ. A
    step of slices is also compared with the step of the whole batch, buffers included, and a line
    shows how the two differ, and why; exit status 4 if the difference has no explanation. A step in
    parts is compared with a loop of the same parts, and with the step of whole ops.
    """
    from situate.cli.answer import print_json, print_table
    from situate.cli.load_plan import load_plan
    from situate.cli.terminal import DIFFERS, working
    from situate.report.batch_difference import (
        batch_figures,
        batch_text,
        is_unexplained,
        parts_figures,
        parts_text,
    )
    from situate.report.measured_run import equality_figures, equality_table
    from situate.runtime.equality import UnplacedOptions, compare
    from situate.runtime.parts.whole_ops import compare_with_whole_ops
    from situate.runtime.whole_batch import compare_with_batch

    loaded = load_plan(model, plan, cluster, costs, optimizer, seed)
    prepared = loaded.prepared
    devices = [prepared.devices[d] for d in prepared.placed.used]
    name = prepared.problem.graph.name
    graph, batch = prepared.problem.graph, None
    # Gradients of slices may differ from those of the batch for a reason, such as batch norms.
    if graph.slices is not None:
        with working(f"running {name} in one batch"), contextlib.redirect_stdout(sys.stderr):
            batch = compare_with_batch(
                loaded.model,
                loaded.inputs,
                loaded.loss,
                graph.slices,
                optimizer=loaded.optimizer if loaded.rule else None,
                steps=steps,
                seed=seed,
                threads=_threads(devices),
                name=name,
                named_devices=prepared.placed.program.named_devices,
            )
    parts = None
    if graph.cuts is not None:
        with working(f"running {name} in parts"), contextlib.redirect_stdout(sys.stderr):
            parts = compare_with_whole_ops(
                loaded.model,
                loaded.inputs,
                loaded.loss,
                prepared.placed.program,
                seed=seed,
                threads=_threads(devices),
                named_devices=prepared.placed.program.named_devices,
            )
    # The model may print, and stdout is for the answer.
    with working(f"running {name} placed and unplaced"), contextlib.redirect_stdout(sys.stderr):
        result = compare(
            loaded.model,
            loaded.inputs,
            loaded.loss,
            loaded.optimizer if loaded.rule else None,
            loaded.step,
            steps=steps,
            seed=seed,
            threads=_threads(devices),
            name=name,
            unplaced=UnplacedOptions(
                clip=loaded.rule.clip if loaded.rule else None,
                recipe=loaded.rule.recipe if loaded.rule else None,
                named_devices=prepared.placed.program.named_devices,
                slices=graph.slices,
                program=None if graph.cuts is None else prepared.placed.program,
            ),
        )
    passing, why = _tolerance(tolerance, devices, result.decomposed, graph)
    if as_json:
        figures = equality_figures(result, passing)
        if batch is not None:
            figures |= batch_figures(batch, graph.warnings)
        if parts is not None:
            figures |= parts_figures(parts)
        print_json(figures | {"graph": name})
    else:
        print_table(equality_table(result, name, passing, why))
        if batch is not None:
            print_table(batch_text(batch, graph.warnings))
        if parts is not None:
            print_table(parts_text(parts))
    unexplained = batch is not None and is_unexplained(batch, graph.warnings)
    unexplained |= parts is not None and not parts.is_rounding
    return DIFFERS if unexplained or not result.within(passing) else 0


def _threads(devices: Collection[RealDevice]) -> int | None:
    """Threads of the unplaced step on CPUs; None for PyTorch's default."""
    counts = (device.threads or 0 for device in devices if device.torch == "cpu")
    return max(counts, default=0) or None


def _tolerance(
    option: float | None, devices: Collection[RealDevice], apart: Sequence[str], graph: Graph
) -> tuple[float, str]:
    """The largest difference that passes, and its reason."""
    threads = {device.threads for device in devices}
    is_short = any(op.dtype in ("bfloat16", "float16") for op in graph.ops)
    rounding = SHORT_TOLERANCE if is_short else TOLERANCE
    if option is not None:
        return option, "as given"
    if any(device.torch != "cpu" for device in devices):
        return rounding, "not all devices are CPUs, and others add in another order"
    if len(threads) > 1:
        return rounding, "the devices have unequal threads, which add in another order"
    if apart:
        return rounding, f"captured as other ops, which round otherwise: {', '.join(apart)}"
    count = next(iter(threads))
    have = f" with {count} thread{'s' * (count > 1)} each" if count else ""
    return 0.0, f"all devices are CPUs{have}, and the unplaced step has as many threads"
