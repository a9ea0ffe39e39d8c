"""A training step that runs parts of its forward pass again before their backward pass, so that
their intermediate values need no memory in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from situate.torch_capture.recompute.copies import with_copies
from situate.torch_capture.recompute.modules import choose_modules
from situate.torch_capture.recompute.parts import parts
from situate.torch_capture.recompute.saved import Saved
from situate.torch_capture.tracing import Trace


def recomputed(trace: Trace, patterns: Sequence[str]) -> Trace:
    """The same step, whose backward pass recomputes the intermediate values of some modules (T.
    Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv 2016).

    A module runs again from its inputs once the gradient of its output exists. Ops, their order of
    addition and their draws are those of the first run, so all numbers are unchanged. State is
    written in the first run only.

    Args:
        trace: of a training step, of slices or of a whole batch.
        patterns: paths of modules, in which `*` stands for any text; or `all`.

    Raises:
        SituateError: no module has such a path, or none has anything to run again.
    """
    saved = Saved(trace)
    modules = choose_modules(saved, patterns)
    graph = with_copies(saved, parts(saved, modules))
    return replace(trace, graph=graph, recompute=modules)
