"""A training step that is traced once, for graphs of it with different recomputed modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from situate.data.graph import Graph
from situate.data.slices import Slices
from situate.data.update_rule import update_rule
from situate.torch_capture import check_installed, checked, step_of
from situate.torch_capture.build import Build, build_fake
from situate.torch_capture.graph import to_graph
from situate.torch_capture.recompute import recomputed
from situate.torch_capture.refusals.errors import explained, quiet
from situate.torch_capture.slices.traces import Traces
from situate.torch_capture.tracing import Trace


@dataclass(frozen=True)
class TracedStep:
    """The trace of a training step, with the name and the optimizer of its graphs."""

    trace: Trace
    name: str
    optimizer: str

    def graph(self, recompute: Sequence[str] = ()) -> Graph:
        """The graph that `situate.capture` makes of the step.

        Raises:
            SituateError: a module is not there, or has nothing to run again.
        """
        with quiet(), explained(self.name, "capturing the step"):
            trace = recomputed(self.trace, recompute)
            return checked(to_graph(trace, self.name, self.optimizer), True, trace)


def trace_step(
    build: Build,
    optimizer: str,
    name: str,
    slices: Slices | None = None,
    packages: Sequence[str] = (),
) -> TracedStep:
    """Trace a step.

    Args:
        packages: that `build` needs.

    The other arguments, and the errors, are those of `situate.capture`.
    """
    update_rule(optimizer)
    check_installed(*packages)
    with quiet(), explained(name, "capturing the step"):
        traced, _ = step_of(Traces(build_fake(build, name), name), True, slices)
    return TracedStep(traced, name, optimizer)
