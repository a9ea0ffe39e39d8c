"""A step whose batch is cut into slices: forward and backward ops once a slice, parameters and
their updates once, or once a replica."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from situate.data.slices import Slices
from situate.errors import SituateError
from situate.torch_capture.build import Built
from situate.torch_capture.flow import described_outputs
from situate.torch_capture.slices.cut import Cut, cut_inputs
from situate.torch_capture.slices.join import joined
from situate.torch_capture.slices.reduction import reduction
from situate.torch_capture.slices.replicas import Replicas
from situate.torch_capture.slices.sizes import Sizes
from situate.torch_capture.slices.whole_batch import notes
from situate.torch_capture.tracing import Trace, joint

if TYPE_CHECKING:
    from torch import fx


def sliced(what: Built, slices: Slices, name: str) -> tuple[Trace, Cut]:
    """The trace of a training step that takes its batch slice by slice and adds up the gradients,
    and the cut of its inputs.

    It does what PyTorch does in a loop that accumulates, `(loss(model, *inputs) / k).backward()`
    where the loss is a mean over samples and k the samples of the batch over those of the slice;
    `loss(model, *inputs).backward()` where it is a sum.

    Raises:
        SituateError: inputs that cannot be cut so; a step that cannot be captured at a slice's
            size; a loss that is neither a mean nor a sum over samples; a name of no parameter.
    """
    cut = cut_inputs(what, slices)
    whole = joint(what, True, name)
    parts = _parts(what, cut, name)
    sizes = Sizes(parts[0], whole, cut)
    kind = slices.loss or reduction(sizes, _loss(parts[0]))
    replicas = Replicas(parts, slices)
    told = (*notes(sizes), *replicas.notes())
    found = joined(parts, cut, cut.divisors(kind), replicas)
    taken = msgspec.structs.replace(slices, shares=cut.samples, loss=kind, once=replicas.once)
    return replace(found, slices=taken, notes=told), cut


def _parts(what: Built, cut: Cut, name: str) -> list[Trace]:
    """The trace of each slice; slices of equal size share one, unless it counts on values."""
    found: list[Trace] = []
    known: dict[int, Trace] = {}
    for s, samples in enumerate(cut.samples):
        part = known.get(samples)
        if part is None or part.taken:
            part = known[samples] = _part(what, cut, s, name)
        found.append(part)
    return found


def _part(what: Built, cut: Cut, s: int, name: str) -> Trace:
    try:
        return joint(cut.slice_of(what, s), True, name)
    except SituateError as error:
        raise SituateError(
            f"{error}; the step runs on the whole batch, and not on {cut.samples[s]} of its "
            f"{sum(cut.samples)} samples: let sizes that it has as numbers follow from its inputs"
        ) from None


def _loss(part: Trace) -> fx.Node:
    outputs = described_outputs(part.graph)
    return next(node for node, d in outputs if type(d).__name__ == "PlainAOTOutput")
