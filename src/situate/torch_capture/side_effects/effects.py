"""Refusals of steps with effects besides computing, and of steps that compute something else when
they are called again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from situate.errors import SituateError
from situate.torch_capture.refusals.remedies import Unsupported
from situate.torch_capture.side_effects.environment import Environment
from situate.torch_capture.side_effects.random_state import (
    ENDS,
    State,
    numbers_of_python,
    put_back,
    uniform_numbers,
)
from situate.torch_capture.side_effects.replaced_buffers import Assigned
from situate.torch_capture.side_effects.runs import Failed, Outcome, Runs
from situate.torch_capture.side_effects.value_numbering import Run

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

AGAIN = "the step computes something else here when it is called again"
STATE = (
    "{again}, because of what it keeps in {places}: a placed step does what was captured, so keep "
    "it in a buffer of the model, or give it as an input"
)
NUMBER = (
    "{again}, because of a number that Python gives it, such as the time: make it outside of the "
    "step, and give it as an input or a buffer of the model"
)
PYTHON_NUMBERS = (
    "the step draws a number by {module}, not by torch: it would be the same in every placed step; "
    "draw it by torch, or outside of the step and give it as an input, or leave it out, as "
    "apply_spec_augment=False does in a model of transformers that masks sound by chance"
)
STORED_TENSOR = (
    "the step keeps a tensor in {place}, where a placed step would leave none: return it from the "
    "model, keep it in a buffer of the model, or leave it out"
)


def check_effects(
    step: torch.nn.Module,
    tensors: Sequence[torch.Tensor],
    environment: Environment,
    training: bool,
    mode: FakeTensorMode,
) -> None:
    """Run the step twice on fake tensors and compare the computations.

    Args:
        environment: the objects that the step may change; they are restored afterwards.

    Raises:
        Unsupported: at the step's line that does something a placed step would not.
        SituateError: the same, if no line is known.
    """
    while True:
        try:
            _Checks(Runs(step, tensors, training, mode), environment).check()
        except Assigned:
            continue
        else:
            return
        finally:
            environment.restore()


@contextlib.contextmanager
def environment_kept(model: torch.nn.Module, call: Callable[..., Any]) -> Iterator[Environment]:
    """The objects that a step can reach and change. The end of the block
    restores them, and the random numbers of Python and NumPy.

    Args:
        model: of the step.
        call: the function that the step calls.
    """
    environment, states = Environment(model=model, loss=call), numbers_of_python()
    try:
        yield environment
    finally:
        environment.restore()
        put_back(states)


class _Checks:
    """The checks of a step that runs on fake tensors."""

    def __init__(self, runs: Runs, environment: Environment) -> None:
        self._runs, self._environment = runs, environment

    def check(self) -> None:
        """Run all checks of `check_effects`. A step that fails passes, because its capture reports
        the reason."""
        states, first = [numbers_of_python()], Run()
        try:
            outcome = self._runs.run(first)
        except Failed:
            return
        states.append(numbers_of_python())
        check_apart(self._runs.state, self._runs.changed)
        self._check_stored()
        # The second run starts from the state that the first left, as the second placed step would.
        again = self._again(Run())
        states.append(numbers_of_python())
        self._check_draws(outcome, *states)
        if again != outcome:
            self._refuse(first)

    def _again(self, run: Run) -> Outcome:
        try:
            return self._runs.run(run)
        except Failed as failed:
            cause = failed.__cause__
            assert cause is not None
            raise Unsupported(self._why()).with_traceback(cause.__traceback__) from None

    def _check_stored(self) -> None:
        """Refuse tensors of the step in objects outside of the model."""
        values, changed = self._runs.values, self._runs.changed
        for place, tensors in self._environment.new_tensors().items():
            outside = place.partition(".")[0] != "model"
            if outside and any(values.varies(tensor, changed) for tensor in tensors):
                raise SituateError(STORED_TENSOR.format(place=repr(place)))

    def _draws_idly(self, outcome: Outcome) -> bool:
        """True if Python's random numbers decide nothing, such as a chance to skip a layer in
        inference.

        The step draws uniform numbers alone, and computes the same at both ends of their range.
        """
        states = numbers_of_python()
        for share in ENDS:
            with uniform_numbers(share):
                try:
                    # Both ends of the range: a threshold in between would change the computation.
                    if self._runs.run(Run()) != outcome:
                        return False
                except Failed:
                    return False
        return numbers_of_python() == states

    def _check_draws(self, outcome: Outcome, *states: dict[str, State]) -> None:
        """Refuse random numbers of Python or NumPy, unless they decide nothing."""
        before, between, after = states
        # Generators that both runs advance; a first run alone may draw to set something up once.
        modules = [m for m in after if before.get(m) != between.get(m) != after[m]]
        for module in modules:
            if not self._draws_idly(outcome):
                start = numbers_of_python()[module]

                # Bound as defaults, since the loop changes both variables.
                def look(_: str, module: str = module, start: State = start) -> None:
                    if numbers_of_python()[module] != start:
                        raise Unsupported(PYTHON_NUMBERS.format(module=module))

                self._again(Run(look=look))
                raise SituateError(PYTHON_NUMBERS.format(module=module))

    def _refuse(self, first: Run) -> None:
        """Raise at the line where the second run begins to compute something else."""

        def look(number: str) -> None:
            if number not in first.numbers:
                raise Unsupported(self._why())

        self._again(Run(look=look))
        raise SituateError(self._why().replace(" here ", " "))

    def _why(self) -> str:
        import torch

        # Attributes that PyTorch gives every module, such as `_buffers`, would tell the user
        # nothing.
        own = vars(torch.nn.Module())
        changed = self._environment.changed()
        places = [repr(place) for place in changed if place.rpartition(".")[2] not in own]
        if not places:
            return NUMBER.format(again=AGAIN)
        return STATE.format(again=AGAIN, places=", ".join(places[:3]))


def check_apart(state: Mapping[str, torch.Tensor], changed: Collection[str]) -> None:
    """Raises SituateError for two different tensors of a model whose common memory the step writes,
    because each would be written alone."""
    spans: dict[int, list[tuple[int, int, str]]] = {}
    for name, tensor in state.items():
        if tensor.numel():
            spans.setdefault(tensor.untyped_storage()._cdata, []).append((*_span(tensor), name))
    for shared in spans.values():
        reached, last = 0, ""
        # By first byte: only the tensor that reaches farthest so far can overlap the next one.
        for begin, end, name in sorted(shared):
            apart = begin >= reached or state[name] is state[last]
            if not apart and not {name, last}.isdisjoint(changed):
                raise SituateError(
                    f"the model's {last!r} and {name!r} share memory, which the step writes: make "
                    "them one tensor and take its parts in the step, or clone one"
                )
            reached, last = max((reached, last), (end, name))


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """The first byte of a tensor in its storage, and the byte after its last."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    extent = 1 + sum((int(length) - 1) * int(step) for length, step in steps)
    begin = int(tensor.storage_offset())
    return begin * tensor.itemsize, (begin + extent) * tensor.itemsize
