"""A training step that runs parts of its forward pass again before their backward pass, so that
nothing keeps what they made in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from situate.torch_capture.recompute.copies import with_copies
from situate.torch_capture.recompute.modules import choose_modules
from situate.torch_capture.recompute.parts import parts
from situate.torch_capture.recompute.saved import Saved
from situate.torch_capture.tracing import Trace


def recomputed(trace: Trace, patterns: Sequence[str]) -> Trace:
    """The same step, whose backward pass reads of some modules what they make a second time (T.
    Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv 2016).

    A module runs again from what it was given, once the gradient of what it gave is there. Ops,
    their order of adding and their draws are those of the first time, so that all numbers are those
    of the step as it was. What the forward pass writes is written the first time only.

    Args:
        trace: of a training step, of slices or of a whole batch.
        patterns: paths of modules, in which `*` stands for any text; or `all`.

    Raises:
        SituateError: no module is called so, or has anything to run again.
    """
    saved = Saved(trace)
    modules = choose_modules(saved, patterns)
    graph = with_copies(saved, parts(saved, modules))
    return replace(trace, graph=graph, recompute=modules)
