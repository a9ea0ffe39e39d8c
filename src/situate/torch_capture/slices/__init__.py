"""A step whose batch is cut into slices: forward and backward ops once a slice, parameters and
their updates once, or once a replica."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from situate.data.slices import AUTO, Slices
from situate.errors import SituateError
from situate.torch_capture.flow import described_outputs
from situate.torch_capture.slices.cut import Cut, cut_inputs
from situate.torch_capture.slices.join import joined
from situate.torch_capture.slices.over_batch import OverBatch, over_batch
from situate.torch_capture.slices.reduction import reduction
from situate.torch_capture.slices.replicas import Replicas
from situate.torch_capture.slices.sizes import Sizes
from situate.torch_capture.slices.traces import Traces
from situate.torch_capture.slices.whole_batch import notes
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx


def sliced(traces: Traces, slices: Slices) -> tuple[Trace, Cut]:
    """The trace of a training step that takes its batch slice by slice and adds up the gradients,
    and the cut of its inputs.

    It does what PyTorch does in a loop that accumulates, `(loss(model, *inputs) / k).backward()`
    where the loss is a mean over samples and k the samples of the batch over those of the slice;
    `loss(model, *inputs).backward()` where it is a sum.

    Raises:
        SituateError: inputs that cannot be cut so; a step that cannot be captured at a slice's
            size; a loss that is neither a mean nor a sum over samples; a name of no parameter;
            batch norms that cannot take statistics over the batch; an order of sums that is yet to
            be chosen.
    """
    if slices.sums == AUTO:
        raise SituateError(
            "slices: plan, compare and explain choose the order of sums for a cluster: give chain "
            "or tree"
        )
    cut = cut_inputs(traces.what, slices)
    whole, parts = traces.whole, traces.parts(cut)
    sizes = Sizes(parts[0], whole, cut)
    kind = slices.loss or reduction(sizes, _loss(parts[0]))
    replicas = Replicas(parts, slices)
    is_over_batch = slices.batch_norm == "batch"
    norms = over_batch(sizes, parts, cut) if is_over_batch else OverBatch()
    told = (*notes(sizes, norms.nodes), *replicas.notes(norms.written))
    found = joined(parts, cut, cut.divisors(kind), replicas, norms, slices.sums)
    taken = msgspec.structs.replace(slices, shares=cut.samples, loss=kind, once=replicas.once)
    return replace(found, slices=taken, notes=told), cut


def _loss(part: Trace) -> fx.Node:
    outputs = described_outputs(part.graph)
    return next(node for node, d in outputs if type(d).__name__ == "PlainAOTOutput")
