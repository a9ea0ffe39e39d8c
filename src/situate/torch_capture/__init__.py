"""PyTorch models: a whole training step (forward, backward, update) or inference, captured on fake
tensors, so that neither memory for the weights nor a GPU is needed."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from situate.data.graph import Graph
from situate.data.recompute import checked_modules
from situate.data.slices import Slices
from situate.data.update_rule import update_rule
from situate.errors import MissingExtra, SituateError
from situate.torch_capture.build import Build, build_fake
from situate.torch_capture.cache import Loading, find_function_graph
from situate.torch_capture.function import current_directory, find_function
from situate.torch_capture.graph import to_graph
from situate.torch_capture.recompute import recomputed
from situate.torch_capture.refusals.errors import explained, quiet
from situate.torch_capture.slices import sliced
from situate.torch_capture.slices.cut import batch_of
from situate.torch_capture.slices.traces import Traces
from situate.torch_capture.tracing import Trace, copied, joint

if TYPE_CHECKING:
    import torch

__all__ = ["Captures", "capture", "capture_function"]

TESTED = "2.13.0"
"""The version of PyTorch whose semi-private parts this reader was tested with."""

INFERENCE = ":inference"

NO_UPDATE = "slices are of a step that trains: leave them out for inference"

Separate = Callable[[object], "tuple[torch.Tensor, ...]"]
"""Makes the tensors that a step is given of inputs as the user has them."""


def capture(
    build: Build,
    *,
    training: bool = True,
    optimizer: str = "sgd",
    name: str = "model",
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
) -> Graph:
    """The graph of one step of a PyTorch model.

    Views and aliases are part of the op whose storage they share. A parameter is an op that holds
    its own bytes and its optimiser's; one op, of the parameter's group, updates it in place.

    Args:
        build: returns (model, inputs, loss). The step is `loss(model, *inputs)`, which returns
            one number; where loss is None the model itself returns it, and where it is a module
            such as `nn.CrossEntropyLoss()` the last input is its target. Inputs by name stand in
            a dict. All runs on tensors without values.
        training: forward, backward and update; otherwise what the model returns, without
            gradients.
        optimizer: `sgd`, `momentum`, `adam` or `adamw`; its state has the parameter's dtype.
            `adamw:clip=1.0` shortens gradients to a norm of 1 before, all together.
        name: what to call the graph.
        slices: of the batch, for a step that takes it slice by slice, see docs/slices.md.
        recompute: modules that run their forward pass again before their backward pass, by path,
            such as `layers.*`, or `all`; see docs/recompute.md.

    Raises:
        MissingExtra: PyTorch is not installed.
        SituateError: an unknown optimizer; `build` fails or returns something else; the step
            depends on values; its batch cannot be cut so; or a module is not there, or has nothing
            to run again.
    """
    return Captures().capture(
        build,
        training=training,
        optimizer=optimizer,
        name=name,
        slices=slices,
        recompute=recompute,
    )


class Captures:
    """Captures of the same steps in several ways, by name: each model is built once, and a step
    that trains is traced once at each size of its batch.

    Args:
        check: slices are also tried on random numbers, at a small size, beside the whole batch.
    """

    def __init__(self, check: bool = True) -> None:
        self.check = check
        self._traces: dict[str, Traces] = {}

    def capture(
        self,
        build: Build,
        *,
        training: bool = True,
        optimizer: str = "sgd",
        name: str = "model",
        slices: Slices | None = None,
        recompute: Sequence[str] = (),
    ) -> Graph:
        """As the function `capture`."""
        update_rule(optimizer)
        check_installed()
        with quiet(), explained(name, "capturing the step"):
            traced, _ = step_of(self._of(build, name), training, slices, recompute)
            return checked(to_graph(traced, name, optimizer), training, traced)

    def samples(self, build: Build, name: str, axes: Mapping[str, int | None]) -> int:
        """The samples of a step's batch; `axes` as in `Slices`.

        Raises:
            MissingExtra: PyTorch is not installed.
            SituateError: `build` fails, or the inputs cannot be cut so.
        """
        check_installed()
        with quiet(), explained(name, "cutting the batch"):
            return batch_of(self._of(build, name).fake, axes)[1]

    def _of(self, build: Build, name: str) -> Traces:
        if name not in self._traces:
            self._traces[name] = Traces(build_fake(build, name), name, self.check)
        return self._traces[name]


def step_of(
    traces: Traces, training: bool, slices: Slices | None, recompute: Sequence[str] = ()
) -> tuple[Trace, Separate]:
    """The trace of a step, of slices where there are any, and what makes the tensors that it is
    given of inputs.

    Raises:
        SituateError: the step depends on values, its batch cannot be cut so, or its modules cannot
            run again.
    """
    modules = checked_modules(recompute)
    if modules and not training:
        raise SituateError("recompute is of a step that trains: leave it out for inference")
    traced, separate = _step_of(traces, training, slices)
    return recomputed(traced, modules) if modules else traced, separate


def _step_of(traces: Traces, training: bool, slices: Slices | None) -> tuple[Trace, Separate]:
    fake = traces.fake
    if slices is None:
        traced = copied(traces.whole) if training else joint(fake, False, traces.name)
        return traced, fake.separate
    if not training:
        raise SituateError(NO_UPDATE)
    traced, cut = sliced(traces, slices)
    return traced, lambda inputs: cut.pieces(fake.separate(inputs))


def capture_function(
    text: str,
    *,
    optimizer: str | None = None,
    cache: bool = True,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    captures: Captures | None = None,
) -> Graph:
    """The graph of what `package.module:function` builds; `:inference` behind it leaves backward
    and update out. Modules of the current directory are found.

    Args:
        text: names a function without arguments that returns what `capture` takes.
        optimizer: as in `capture`; `sgd` where it is None.
        cache: take the graph from disk if nothing it was captured from has changed: the function's
            module and every other of the current directory that it loads.
        slices, recompute: as in `capture`.
        captures: what was captured before of the same function.

    Raises:
        MissingExtra: PyTorch is not installed.
        SituateError: no such module or function; otherwise as `capture`.
    """
    training = not text.endswith(INFERENCE)
    if not training and optimizer is not None:
        raise SituateError(f"{text}: inference has no update: leave the optimizer out")
    optimizer = optimizer or "sgd"
    update_rule(optimizer)
    check_installed()
    captures = captures or Captures()
    # A graph on disk has been checked.
    cache = cache and captures.check
    with current_directory():
        if cache and (graph := find_function_graph(text, optimizer, slices, recompute)):
            return graph
        loading = Loading()
        function, module = find_function(text.removesuffix(INFERENCE))
        graph = captures.capture(
            function,
            training=training,
            optimizer=optimizer,
            name=text,
            slices=slices,
            recompute=recompute,
        )
        if cache:
            resolved = graph.slices, graph.recompute
            loading.keep(text, optimizer, module, graph, slices, recompute)
            if resolved != (slices, tuple(recompute)):  # by which plans name what was found out
                loading.keep(text, optimizer, module, graph, *resolved)
        return graph


def checked(graph: Graph, training: bool, traced: Trace) -> Graph:
    """A graph that was captured, with what to warn of, as of devices that were named.

    Raises:
        SituateError: there is nothing to train.
    """
    if training and all(op.phase != "update" for op in graph.ops):
        raise SituateError("the loss depends on no parameter that takes a gradient")
    required_values = (values.warning for values in traced.required)
    warnings = (
        *_warnings(),
        *traced.devices.warnings,
        *required_values,
        *traced.notes,
        *graph.warnings,
    )
    return dataclasses.replace(graph, warnings=warnings)


def check_installed(*packages: str) -> None:
    """Raises MissingExtra for the first of PyTorch and `packages` that is not installed."""
    for package in ("torch", *packages):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(package, "torch")


def _warnings() -> tuple[str, ...]:
    import torch

    version = torch.__version__.partition("+")[0]
    if version == TESTED:
        return ()
    return (f"captured with torch {version}; tested with {TESTED}: pip install torch=={TESTED}",)
