"""A step whose batch is cut into slices. Each slice has its own forward and backward ops;
parameters and their updates exist once, or once per replica."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from situate.data.slices import AUTO, Slices
from situate.errors import SituateError
from situate.torch_capture.slices.cut import Cut, cut_inputs
from situate.torch_capture.slices.dependence.analysis import dependence
from situate.torch_capture.slices.dependence.constants import Cutting
from situate.torch_capture.slices.join import joined
from situate.torch_capture.slices.labels import label_notes
from situate.torch_capture.slices.over_batch import OverBatch, Sizes, over_batch
from situate.torch_capture.slices.replicas import Replicas
from situate.torch_capture.slices.traces import Traces, with_sequences
from situate.torch_capture.slices.whole_batch import notes, reduction
from situate.torch_capture.tracing import Trace


def sliced(traces: Traces, slices: Slices) -> tuple[Trace, Cut]:
    """The trace of a training step that takes its batch slice by slice and adds up the gradients,
    and the cut of its inputs.

    The step equals a PyTorch loop that accumulates gradients. If the loss is a mean over samples,
    the loop runs `(loss(model, *inputs) / k).backward()`, where k is the batch's number of samples
    over the slice's. If the loss is a sum, it runs `loss(model, *inputs).backward()`.

    Raises:
        SituateError: inputs that cannot be cut so; a step that cannot be captured at a slice's
            size; a loss that is neither a mean nor a sum over samples; a name of no parameter;
            batch norms that cannot take statistics over the batch; an order of sums that is not
            chosen yet.
    """
    if slices.sums == AUTO:
        raise SituateError(
            "slices: plan, compare and explain choose the order of sums for a cluster: give chain "
            "or tree"
        )
    slices = with_sequences(traces, slices)
    cut = cut_inputs(traces.fake, slices)
    whole, parts = traces.whole, traces.parts(cut)
    is_over_batch = slices.batch_norm == "batch"
    norms = over_batch(Sizes(parts[0], whole), parts, cut) if is_over_batch else OverBatch()
    # Slices of one size share a trace, which is analysed once.
    distinct = list({id(part): part for part in parts}.values())
    steps = [
        dependence(part, whole, cut.axes, _cutting(cut, parts, part), norms.nodes)
        for part in distinct
    ]
    kind = slices.loss or reduction(steps)
    replicas = Replicas(parts, slices)
    lines = dict.fromkeys(text for step in steps for text in notes(step, kind, norms.buffers))
    if steps[0] is not None and kind == "mean":
        lines |= dict.fromkeys(label_notes(steps[0], cut.samples[0], traces.fake.examples))
    trial = None if is_over_batch else traces.witness(parts[0], cut, kind)
    if trial is not None and trial.line:
        lines[trial.line] = None
    step = joined(parts, cut, cut.divisors(kind), replicas, norms, slices.sums)
    resolved = msgspec.structs.replace(slices, shares=cut.samples, loss=kind, once=replicas.once)
    lines |= dict.fromkeys(replicas.notes(norms.buffers))
    return replace(step, slices=resolved, notes=tuple(lines)), cut


def _cutting(cut: Cut, parts: Sequence[Trace], part: Trace) -> Cutting:
    """The positions in the batch of the slices that share a trace."""
    own = [s for s, other in enumerate(parts) if other is part]
    starts = tuple(sum(cut.samples[:s]) for s in own)
    return Cutting(cut.samples[own[0]], sum(cut.samples), starts)
