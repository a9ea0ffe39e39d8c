"""PyTorch models as graphs: a whole training step (forward, backward, update) or inference.

Capture runs on fake tensors, so it needs neither memory for the weights nor a GPU.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from situate.data.cuts import Cuts
from situate.data.graph import Graph
from situate.data.letter_graph import LetterGraph
from situate.data.recompute import checked_modules
from situate.data.slices import Slices
from situate.data.update_rule import Recipe, update_rule
from situate.errors import MissingExtra, SituateError
from situate.torch_capture.build import Build, build_fake
from situate.torch_capture.cache import Loading, find_function_graph
from situate.torch_capture.cuts import cut_ops
from situate.torch_capture.cuts.classes import LetterClass, classes
from situate.torch_capture.cuts.letter_graph import letter_graph
from situate.torch_capture.cuts.shorter import chains, shortened
from situate.torch_capture.cuts.writer import FakeResults
from situate.torch_capture.function import current_directory, find_function
from situate.torch_capture.graph import to_graph
from situate.torch_capture.ops import WorkTable
from situate.torch_capture.recompute import recomputed
from situate.torch_capture.refusals.errors import explained, quiet
from situate.torch_capture.slices import sliced
from situate.torch_capture.slices.cut import batch_of
from situate.torch_capture.slices.traces import Traces
from situate.torch_capture.tracing import Trace, copied, joint
from situate.torch_capture.updates.recipes import under_recipe

if TYPE_CHECKING:
    import torch

__all__ = ["Captures", "capture", "capture_function"]

TESTED = "2.13.0"
"""The PyTorch version whose semi-private parts this package was tested with."""

INFERENCE = ":inference"

NO_UPDATE = "slices are of a step that trains: leave them out for inference"

Separate = Callable[[object], "tuple[torch.Tensor, ...]"]
"""Takes the step's tensors out of inputs as the user has them."""


def capture(
    build: Build,
    *,
    training: bool = True,
    optimizer: str = "sgd",
    name: str = "model",
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    cuts: Cuts | None = None,
) -> Graph:
    """The graph of one step of a PyTorch model.

    Views and aliases belong to the op whose storage they share. A parameter is an op that holds the
    parameter's bytes and those of its optimiser state. Another op of the same group updates it in
    place.

    Args:
        build: returns (model, inputs, loss). The step is `loss(model, *inputs)`, which returns one
            number. If loss is None, the model itself returns that number. If loss is a module such
            as `nn.CrossEntropyLoss()`, the last input is its target. Keyword arguments are inputs
            in a dict. Everything runs on tensors without values.
        training: forward, backward and update; otherwise the model's outputs, without gradients.
        optimizer: one of `situate.data.update_rule.OPTIMIZERS`. `adamw:clip=1.0` first clips the
            gradients to a common norm of 1, and `adamw:recipe=megatron` trains in mixed precision;
            see docs/recipes.md.
        name: of the graph.
        slices: of the batch, for a step that takes it slice by slice; see docs/slices.md.
        recompute: modules that run their forward pass again before their backward pass, by path,
            such as `layers.*`, or `all`; see docs/recompute.md.
        cuts: of ops into parts; see docs/cuts.md.

    Raises:
        MissingExtra: PyTorch is not installed.
        SituateError: the optimizer is unknown; `build` fails or returns something else; the step
            depends on values; its batch or its ops cannot be cut so; or a module is not there, or
            has nothing to run again.
    """
    return Captures().capture(
        build,
        training=training,
        optimizer=optimizer,
        name=name,
        slices=slices,
        recompute=recompute,
        cuts=cuts,
    )


class Captures:
    """Several captures of the same named steps.

    Each model is built once, and each training step is traced once per batch size.

    Args:
        check: also run the slices on random numbers, at a small size, beside the whole batch.
    """

    def __init__(self, check: bool = True) -> None:
        self.check = check
        self._traces: dict[tuple[str, Recipe | None], Traces] = {}

    def capture(
        self,
        build: Build,
        *,
        training: bool = True,
        optimizer: str = "sgd",
        name: str = "model",
        slices: Slices | None = None,
        recompute: Sequence[str] = (),
        cuts: Cuts | None = None,
    ) -> Graph:
        """The graph of one step. Arguments and errors are those of the function `capture`."""
        check_installed()
        with quiet(), explained(name, "capturing the step"):
            recipe = update_rule(optimizer).recipe
            traced, _ = step_of(self._of(build, name, recipe), training, slices, recompute, cuts)
            return checked(to_graph(traced, name, optimizer), training, traced)

    def samples(self, build: Build, name: str, axes: Mapping[str, int | None]) -> int:
        """The number of samples in a step's batch; `axes` as in `Slices`.

        Raises:
            MissingExtra: PyTorch is not installed.
            SituateError: `build` fails, or the inputs cannot be cut so.
        """
        check_installed()
        with quiet(), explained(name, "cutting the batch"):
            return batch_of(self._of(build, name).fake, axes)[1]

    def _of(self, build: Build, name: str, recipe: Recipe | None = None) -> Traces:
        key = name, recipe
        if key not in self._traces:
            fake = under_recipe(build_fake(build, name), recipe)
            self._traces[key] = Traces(fake, name, self.check)
        return self._traces[key]


def step_of(
    traces: Traces,
    training: bool,
    slices: Slices | None,
    recompute: Sequence[str] = (),
    cuts: Cuts | None = None,
) -> tuple[Trace, Separate]:
    """The trace of a step, in slices and in parts if there are any, and the function that takes its
    tensors out of inputs.

    Raises:
        SituateError: the step depends on values, its batch or its ops cannot be cut so, or its
            modules cannot run again.
    """
    modules = checked_modules(recompute)
    if modules and not training:
        raise SituateError("recompute is of a step that trains: leave it out for inference")
    traced, separate = _step_of(traces, training, slices)
    if cuts is not None:
        traced = cut_ops(traced, cuts)
    return recomputed(traced, modules) if modules else traced, separate


def _step_of(traces: Traces, training: bool, slices: Slices | None) -> tuple[Trace, Separate]:
    fake = traces.fake
    if slices is None:
        # Clipping and recomputation change a trace, and the next graph begins from the same one.
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
    cuts: Cuts | None = None,
    captures: Captures | None = None,
) -> Graph:
    """The graph of the step that `package.module:function` builds.

    The suffix `:inference` leaves out the backward pass and the update. Modules of the current
    directory can be imported.

    Args:
        text: names a function without arguments that returns the same triple as `build` of
            `capture`.
        optimizer: as in `capture`; `sgd` where it is None.
        cache: take the graph from disk unless its sources have changed: the function's module and
            all modules of the current directory that it loads.
        slices, recompute, cuts: as in `capture`.
        captures: earlier captures of the same function.

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
    # The cache looks for modules on the path, so the current directory comes first.
    with current_directory():
        if cache and (graph := find_function_graph(text, optimizer, slices, recompute, cuts)):
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
            cuts=cuts,
        )
        # Plans name the resolved slices and modules. A second key lets such a plan find the graph,
        # too.
        if cache:
            resolved = graph.slices, graph.recompute
            loading.keep(text, optimizer, module, graph, slices, recompute, cuts)
            if resolved != (slices, tuple(recompute)):
                loading.keep(text, optimizer, module, graph, *resolved, cuts)
        return graph


def checked(graph: Graph, training: bool, traced: Trace) -> Graph:
    """A captured graph with all its warnings, including those about devices that the program named.

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


@dataclass(frozen=True)
class TracedStep:
    """The trace of a step, with the name and the optimizer of its graphs."""

    trace: Trace
    name: str
    optimizer: str
    training: bool = True
    retrace: Callable[[Callable[[Build], Build]], TracedStep] | None = None
    """Traces the step of a model that a function of `build` changes."""
    reslice: Callable[[Slices], TracedStep] | None = None
    """Traces the step with its batch in slices; None if it has slices, or does not train."""

    def sliced(self, shares: tuple[int, ...]) -> TracedStep | None:
        """The step with its batch in slices of these shares; None if it has no such slices, or if
        they may change the numbers of the step, as of a batch norm or of a mean that may leave out
        labels. The user who wants those gives the slices, and is warned."""
        if self.reslice is None:
            return None
        try:
            step = self.reslice(Slices(shares))
        except SituateError:
            return None
        return None if step.trace.notes else step

    def shorter(self, blocks: int) -> TracedStep | None:
        """The step of the model with fewer of its repeated blocks; None where it has no more than
        these, or does not run with fewer."""
        paths = chains(self.trace)
        if self.retrace is None or not paths:
            return None
        try:
            step = self.retrace(lambda build: shortened(build, paths, blocks))
        except SituateError:
            return None
        return step if len(step.trace.graph.nodes) < len(self.trace.graph.nodes) else None

    @cached_property
    def _results(self) -> FakeResults:
        return FakeResults()

    @cached_property
    def _work_table(self) -> WorkTable:
        return WorkTable()

    @cached_property
    def classes(self) -> list[LetterClass]:
        """The classes of dimensions along which ops can be cut."""
        return classes(self.trace)

    @cached_property
    def letters(self) -> LetterGraph:
        """The ops with the classes that may cut them."""
        return letter_graph(self.trace, self.classes, self.optimizer)

    @property
    def units(self) -> dict[str, list[int]]:
        """By kind of class, the units of each class of that kind."""
        units: dict[str, list[int]] = {}
        for letter_class in self.classes:
            units.setdefault(letter_class.kind, []).append(letter_class.units)
        return units

    def graph(self, recompute: Sequence[str] = (), cuts: Cuts | None = None) -> Graph:
        """The graph that `situate.capture` makes of the step.

        Raises:
            SituateError: a module is not there, or has nothing to run again; or ops cannot be cut
                so.
        """
        with quiet(), explained(self.name, "capturing the step"):
            # Clipping changes a trace, and the next graph begins from the same one.
            if cuts is None:
                trace = copied(self.trace)
            else:
                trace = cut_ops(self.trace, cuts, self.classes, self._results)
            trace = recomputed(trace, recompute) if recompute else trace
            graph = to_graph(trace, self.name, self.optimizer, self._work_table)
            return checked(graph, self.training, trace)


def trace_step(
    build: Build,
    optimizer: str,
    name: str,
    slices: Slices | None = None,
    packages: Sequence[str] = (),
    training: bool = True,
) -> TracedStep:
    """Trace a step.

    Args:
        packages: that `build` needs.
        training: False for inference.

    The other arguments, and the errors, are those of `situate.capture`.
    """
    recipe = update_rule(optimizer).recipe
    check_installed(*packages)
    with quiet(), explained(name, "capturing the step"):
        fake = under_recipe(build_fake(build, name), recipe)
        traced, _ = step_of(Traces(fake, name), training, slices)

    def retrace(change: Callable[[Build], Build]) -> TracedStep:
        return trace_step(change(build), optimizer, name, slices, packages, training)

    def reslice(own: Slices) -> TracedStep:
        return trace_step(build, optimizer, name, own, packages)

    is_whole = training and slices is None
    return TracedStep(traced, name, optimizer, training, retrace, reslice if is_whole else None)
