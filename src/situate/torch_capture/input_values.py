"""Values of a step's inputs that it looks at, taken from the inputs that it is captured with."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.followed_values import Followed, data_forgotten, followed
from situate.torch_capture.patches.numbers_of_tensors import numbers_read
from situate.torch_capture.patches.patched import dispatched
from situate.torch_capture.refusals.libraries import value_remedy
from situate.torch_capture.refusals.lines import user_frame_of, written

if TYPE_CHECKING:
    import torch

LOOKS = frozenset({"data_dependent_output", "dynamic_output_shape"})
"""Tags of operators whose result, or its size, is known only if values are."""

TARGET = re.compile("label|target", re.IGNORECASE)
"""In a name under which a model is given what a loss compares its result with."""

MOST_SHOWN = 16
"""Numbers of a tensor that a warning shows."""


@dataclass(frozen=True)
class Example:
    """A tensor of integers or booleans among the inputs.

    Attributes:
        name: where it is among them, such as `'attention_mask'`.
        values: those it has when the step is captured.
    """

    name: str
    values: torch.Tensor


@dataclass(frozen=True)
class Taken:
    """An input whose values the captured step counts on.

    Attributes:
        number: of the input.
        name: as in `Example`.
        values: the only ones that it may have.
        line: `file.py:12` of the program, that looks at them.
        remedy: how to do without.
    """

    number: int
    name: str
    values: torch.Tensor
    line: str
    remedy: str

    @property
    def warning(self) -> str:
        """A line that says what a plan of the step holds for."""
        kind = f"{str(self.values.dtype).removeprefix('torch.')} {tuple(self.values.shape)}"
        few = self.values.numel() <= MOST_SHOWN
        which = f"which are {self.values.tolist()}" if few else f"of type and shape {kind}"
        return (
            f"the step and its plan hold for the values of input {self.name} alone, {which}: "
            f"{self.line} depends on them; to be free of that, {self.remedy}"
        )


class InputValues:
    """The values of a step's inputs while it runs on fake tensors, and those that it looks at.

    Looked at are values that follow from inputs of integers or booleans, from such alone and from
    numbers of the program, while the model computes. Values that depend on parameters, buffers,
    floating-point inputs or chance are never known. Nor are those of what the loss alone reads, or
    of what the model is given as labels or targets: a step that holds for one batch of them trains
    nothing.

    Args:
        examples: by number of an input.

    Attributes:
        masks: transformers may look at masks, too, to leave out those that hide nothing.
    """

    def __init__(self, examples: Mapping[int, Example]) -> None:
        self._examples = examples
        self.masks = False
        self._followed = Followed()
        self._looks: dict[int, traceback.FrameSummary | None] = {}
        self._targets: set[int] = set()
        self._inside = 0
        self._retraced = False

    def __bool__(self) -> bool:
        return bool(self._examples)

    @property
    def taken(self) -> tuple[Taken, ...]:
        """The inputs that the step has looked at, in order."""
        return tuple(self._taken(number) for number in sorted(self._looks))

    def _taken(self, number: int) -> Taken:
        example, frame = self._examples[number], self._looks[number]
        line = written(frame.filename, frame.lineno).removesuffix(": ") if frame else "a line"
        return Taken(number, example.name, example.values, line, value_remedy(frame))

    def begin(self, tensors: Sequence[torch.Tensor]) -> None:
        """A run of the step begins, with these tensors of the inputs."""
        self._followed, self._targets, self._inside = Followed(), set(), 0
        for number, example in self._examples.items():
            self._followed.give(tensors[number], example.values, number)

    def begin_again(self, tensors: Sequence[torch.Tensor]) -> None:
        """A run of the step as it was exported begins: it may look at what was looked at."""
        self.begin(tensors)
        self._retraced = True

    def known(self) -> Mapping[int, torch.Tensor]:
        """By number of an input, the values that have been looked at."""
        return {number: self._examples[number].values for number in self._looks}

    def is_known(self, tensor: object) -> bool:
        """True if a mask may be looked at, and its values are known."""
        found = self._followed.of(tensor) if self.masks else None
        return found is not None and self._may_look(self._followed.made_of(found))

    @contextmanager
    def model_called(self, model: torch.nn.Module) -> Iterator[None]:
        """Within, what is looked at while the model computes is taken."""

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
        """Within, operators on fake tensors give what values decide, where they may be taken."""
        with dispatched(self._called), data_forgotten(), numbers_read():
            yield

    def _called(self, run: Any, mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if _looks(func, args, kwargs):
            real = self._followed.computed(func, args, kwargs)
            if real is not None and self._look(self._followed.made_of_all(args, kwargs)):
                return self._followed.fakes(mode, real, args, kwargs)
        return followed(self._followed, run, func, args, kwargs)

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


def _looks(func: Any, args: Any, kwargs: Any) -> bool:
    """True for an operator whose result, or its size, values decide. One that indexes asks for the
    places in each mask, and for nothing where it is given numbers."""
    sized = kwargs.get("output_size") is not None
    tags = {tag.name for tag in getattr(func, "tags", ())}
    return not LOOKS.isdisjoint(tags) and func._opname != "index" and not sized


def _arguments(model: torch.nn.Module, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """Every leaf of a model's arguments, with the names that it is found by."""
    import inspect

    from torch.utils._pytree import keystr, tree_flatten_with_path

    try:
        bound = inspect.signature(model.forward).bind_partial(*args, **kwargs).arguments
    except TypeError:  # which the call will raise
        bound = {"": (args, kwargs)}
    for path, leaf in tree_flatten_with_path(dict(bound))[0]:
        yield keystr(path), leaf
