"""Input values that a step reads while it is captured, taken from the example inputs."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.patched import dispatched, replaced
from situate.torch_capture.refusals.libraries import value_remedy
from situate.torch_capture.refusals.lines import format_line, user_frame_of
from situate.torch_capture.values.followed import Followed, data_forgotten, followed
from situate.torch_capture.values.required import (
    COMPARISONS,
    Example,
    RequiredValues,
    Test,
    compare,
)

if TYPE_CHECKING:
    import torch
    from torch import fx

LOOKS = frozenset({"data_dependent_output", "dynamic_output_shape"})
"""Tags of operators whose result, or its size, is known only if values are."""

TARGET = re.compile("label|target", re.IGNORECASE)
"""Matches argument names under which a model gets labels or targets."""


FIRST_COMPARISON = 2**32
"""Smaller numbers are of inputs, this and larger ones of comparisons."""


class InputValues:
    """The values of a step's inputs while it runs on fake tensors, and the values that it reads.

    The step may read values that follow from inputs of integers or booleans and from numbers of the
    program, while the model computes. Values that depend on parameters, buffers, floating-point
    inputs or randomness are never known. Inputs that only the loss reads are not known either, nor
    are labels and targets of the model: a step that holds for one batch of labels trains nothing.

    Args:
        examples: by number of an input.

    Attributes:
        masks: transformers may read masks, too, to omit those that hide nothing.
    """

    def __init__(self, examples: Mapping[int, Example]) -> None:
        self._examples = dict(examples)
        self._inputs = frozenset(examples)
        self._comparisons: dict[tuple[int, Test], int] = {}
        self.masks = False
        self._followed = Followed()
        self._looks: dict[int, traceback.FrameSummary | None] = {}
        self._targets: set[int] = set()
        self._inside = 0
        self._retraced = False

    def __bool__(self) -> bool:
        return bool(self._inputs)

    @property
    def required(self) -> tuple[RequiredValues, ...]:
        """The inputs whose values the step has read, in order."""
        candidates = (self._required_values(number) for number in sorted(self._looks))
        return tuple(t for t in candidates if t.test is None or t.number not in self._looks)

    def _required_values(self, number: int) -> RequiredValues:
        example, frame = self._examples[number], self._looks[number]
        line = format_line(frame.filename, frame.lineno).removesuffix(": ") if frame else "a line"
        whose = number if example.test is None else example.number
        remedy = value_remedy(frame)
        return RequiredValues(
            whose, example.name, example.values, example.test, line, remedy, example.is_random
        )

    def begin(self, tensors: Sequence[torch.Tensor]) -> None:
        """Begin a run of the step with these tensors of the inputs."""
        self._followed, self._targets, self._inside = Followed(), set(), 0
        self._retraced = False
        for number in self._inputs:
            self._followed.assign(tensors[number], self._examples[number].values, number)

    def begin_again(self, tensors: Sequence[torch.Tensor]) -> None:
        """Begin a run of the exported step, which may read the values that the first run read."""
        self.begin(tensors)
        self._retraced = True

    def in_graph(self, graph: fx.Graph) -> Callable[[fx.Node], torch.Tensor | None]:
        """A function from a node of the exported step to its value, for inputs that were read and
        for comparisons of inputs; None for other nodes."""
        from torch import fx

        numbers = {node: k for k, node in enumerate(graph.find_nodes(op="placeholder"))}
        # A comparison that comes later, of an input that is written over, would be another one.
        changed = {k for k in self._inputs if self._followed.is_written(k)}

        def number_of(node: fx.Node) -> int | None:
            name = getattr(node.target, "_opname", "")
            if name not in COMPARISONS:
                return numbers.get(node)
            tensor, scalar = node.args[:2]
            number = numbers.get(tensor, -1) if isinstance(tensor, fx.Node) else -1
            if number in changed or not isinstance(scalar, (int, float)):
                return None
            return self._comparisons.get((number, (name, scalar)))

        def find(node: fx.Node) -> torch.Tensor | None:
            number = number_of(node)
            return self._examples[number].values if number in self._looks else None

        return find

    @property
    def looked(self) -> bool:
        """True if the step has read values."""
        return bool(self._looks)

    def forget(self) -> None:
        """Let no values be known from now on."""
        self._inputs, self._looks, self.masks = frozenset(), {}, False

    def begin_with_masks(self) -> None:
        """Begin another attempt to capture the step, which may read masks, too."""
        self.masks, self._looks = True, {}

    def is_known(self, tensor: object) -> bool:
        """True if a mask may be read, and its values are known."""
        values = self._followed.of(tensor) if self.masks else None
        return values is not None and self._may_look(self._followed.made_of(values))

    @contextmanager
    def model_called(self, model: torch.nn.Module) -> Iterator[None]:
        """A block in which reads while the model computes are recorded."""

        def enter(_: Any, args: Any, kwargs: Any) -> None:
            self._inside += 1
            self._note_targets(model, args, kwargs)

        def leave(*_: Any) -> None:
            self._inside -= 1

        hooks = (
            model.register_forward_pre_hook(enter, with_kwargs=True),
            model.register_forward_hook(leave),
        )
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _note_targets(self, model: torch.nn.Module, args: Any, kwargs: Any) -> None:
        for name, leaf in _arguments(model, args, kwargs):
            values = self._followed.of(leaf)
            if values is not None and TARGET.search(name):
                self._targets |= self._followed.made_of(values)

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """A block in which operators on fake tensors return results that depend on values, if these
        may be read."""
        with dispatched(self._run), data_forgotten(), numbers_read():
            yield

    def _run(self, run: Any, mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if _looks(func, kwargs):
            real = self._followed.computed(func, args, kwargs)
            if real is not None and self._look(self._followed.made_of_all(args, kwargs)):
                return self._followed.fakes(mode, real, args, kwargs)
        result = followed(self._followed, run, func, args, kwargs)
        if (number := self._comparison(func, args)) is not None:
            self._followed.assign(result, self._examples[number].values, number)
        return result

    def _comparison(self, func: Any, args: Any) -> int | None:
        """The number of a comparison between an input and a number; None for anything else, and for
        an overwritten input. If the step reads only comparisons, the input may have other
        values."""
        name = getattr(func, "_opname", "")
        if self._followed.depth or name not in COMPARISONS or func._overloadname != "Scalar":
            return None
        tensor, scalar = args[:2]
        real = self._followed.of(tensor)
        made_of = set() if real is None else self._followed.made_of(real)
        if len(made_of) != 1 or not made_of <= self._inputs - self._targets:
            return None
        [number] = made_of
        example = self._examples[number]
        if not self._followed.is_assigned(tensor, number):
            return None
        return self._numbered(number, example, (name, scalar))

    def _numbered(self, number: int, example: Example, test: Test) -> int:
        key = number, test
        if key not in self._comparisons:
            name = f"{example.name} {COMPARISONS[test[0]]} {test[1]}"
            values = compare(example.values, test)
            # Behind the numbers of all inputs.
            self._comparisons[key] = FIRST_COMPARISON + len(self._comparisons)
            self._examples[self._comparisons[key]] = Example(
                name, values, number, test, example.is_random
            )
        return self._comparisons[key]

    def _may_look(self, numbers: set[int]) -> bool:
        if self._retraced:
            return numbers <= self._looks.keys()
        return self._inside > 0 and numbers.isdisjoint(self._targets)

    def _look(self, numbers: set[int]) -> bool:
        if not self._may_look(numbers):
            return False
        frame = user_frame_of(traceback.extract_stack()) if not self._retraced else None
        for number in numbers:
            self._looks.setdefault(number, frame)
        return True


def _looks(func: Any, kwargs: Any) -> bool:
    """True for an operator whose result, or its size, depends on values. Indexing does not count:
    it asks for the places in a mask by another operator."""
    return _depends_on_values(func) and kwargs.get("output_size") is None


@cache
def _depends_on_values(func: Any) -> bool:
    tags = {tag.name for tag in getattr(func, "tags", ())}
    return not LOOKS.isdisjoint(tags) and func._opname != "index"


def _arguments(model: torch.nn.Module, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """Every leaf of a model's arguments, with its name."""
    import inspect

    from torch.utils._pytree import keystr, tree_flatten_with_path

    try:
        bound = inspect.signature(model.forward).bind_partial(*args, **kwargs).arguments
    except TypeError:  # which the call will raise
        bound = {"": (args, kwargs)}
    for path, leaf in tree_flatten_with_path(dict(bound))[0]:
        yield keystr(path), leaf


@contextmanager
def numbers_read() -> Iterator[None]:
    """Let `torch.tensor` ask tensors in a list for their numbers.

    PyTorch reads their memory, which fake tensors lack, and raises an error even if their values
    are known.
    """
    import torch

    make = torch.tensor

    def tensor(data: Any, **settings: Any) -> torch.Tensor:
        alike = settings.get("dtype") is not None
        return make(
            _with_numbers(data, alike) if isinstance(data, (list, tuple)) else data, **settings
        )

    with replaced(torch, "tensor", tensor):
        yield


def _with_numbers(data: Any, alike: bool) -> Any:
    """The data with numbers for tensors, if they make a tensor of the same dtype. Python has one
    type of integers and one of floating-point numbers."""
    import torch

    if isinstance(data, (list, tuple)):
        return [_with_numbers(entry, alike) for entry in data]
    fake = isinstance(data, torch.Tensor) and data.dim() == 0
    kinds = (torch.int64, torch.bool)
    return data.item() if fake and (alike or data.dtype in kinds) else data
