"""Runs of a step on fake tensors, to be compared with one another, and the state that each run must
preserve."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situate.errors import SituateError
from situate.torch_capture.patches.patched import replaced
from situate.torch_capture.refusals.remedies import Unsupported
from situate.torch_capture.side_effects.random_state import SEEDS, seeds_are_given, state_of_chance
from situate.torch_capture.side_effects.replaced_buffers import Assigned
from situate.torch_capture.side_effects.storages import tensors_in
from situate.torch_capture.side_effects.value_numbering import Run, Values, numbered

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: the numbers of the values that it returned and of those that it left in
    state and inputs, and the functions that differentiate what it returned."""

    returned: tuple[str, ...]
    state: tuple[str, ...]
    gradients: tuple[object, ...]


class Failed(Exception):
    """The step raised what is its cause."""


class Runs:
    """A step that is run again and again.

    Args:
        step: a module that calls the user's, `model`.
        tensors: its inputs, of which every run has new ones.

    Attributes:
        values: the numbers of what was computed.
        state: parameters and buffers, by name.
        changed: names of those that are others in the next step, as far as they are known.
    """

    def __init__(
        self, step: Any, tensors: Sequence[torch.Tensor], training: bool, mode: FakeTensorMode
    ) -> None:
        model = step.model
        self._step, self._tensors, self._training, self._mode = step, tensors, training, mode
        self.values = Values(mode)
        self.state: dict[str, torch.Tensor] = {
            **dict(model.named_parameters(remove_duplicate=False)),
            **dict(model.named_buffers(remove_duplicate=False)),
        }
        self.changed: tuple[str, ...] = ()

    def run(self, run: Run) -> Outcome:
        """Run the step once more.

        Raises:
            Failed: it failed.
            Unsupported: it does what a placed step would not, in a line of its own.
            SituateError: the same, where no line is known.
            Assigned: the model assigns buffers that were not known to be assigned.
        """
        inputs = self._fresh()
        self.values.begin(inputs, self.state, self.changed, run)
        before, chance = invariants(self._step.model, inputs), state_of_chance()
        with settings_kept():
            returned = self._call(inputs)
        if chance != state_of_chance():
            raise SituateError(SEEDS)
        after = invariants(self._step.model, inputs)
        if changed := [what for what, value in before.items() if after.get(what) != value]:
            raise SituateError(
                f"the step changes {changed[0]}, which a placed step would not: do so outside of it"
            )
        self.changed = self.changed or self._overwritten()
        of = self.values.of
        state = tuple(map(of, (*self.state.values(), *inputs)))
        return Outcome(tuple(map(of, returned)), state, tuple(_gradients(returned, self.state)))

    def _fresh(self) -> list[torch.Tensor]:
        """Inputs of which nothing is known yet."""
        import torch

        with self._mode:
            return [
                torch.empty_strided(
                    t.shape, t.stride(), dtype=t.dtype, device=t.device
                ).requires_grad_(t.requires_grad)
                for t in self._tensors
            ]

    def _call(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The result of the step, with the choices that libraries make where they are exported."""
        import torch

        try:
            with (
                seeds_are_given(),
                torch.set_grad_enabled(self._training),
                replaced(self._mode, "allow_non_fake_inputs", True),
                replaced(torch.compiler, "_is_compiling_flag", True),
                replaced(torch.compiler, "_is_exporting_flag", True),
                numbered(self.values),
            ):
                return list(tensors_in(self._step(*inputs)))
        except (SituateError, Unsupported, Assigned):
            raise
        except Exception as error:
            raise Failed from error

    def _overwritten(self) -> tuple[str, ...]:
        overwritten = (name for name, t in self.state.items() if self.values.is_written(t))
        trained = (n for n, t in self.state.items() if self._training and t.requires_grad)
        return tuple(dict.fromkeys((*overwritten, *trained)))


def _gradients(
    returned: Sequence[torch.Tensor], state: dict[str, torch.Tensor]
) -> Iterator[tuple[object, ...]]:
    """The functions that differentiate what a step returned, each with those it hands on to."""
    names = {id(tensor): name for name, tensor in state.items()}
    pending = [tensor.grad_fn for tensor in returned if tensor.grad_fn is not None]
    order: dict[Any, int] = {function: k for k, function in enumerate(dict.fromkeys(pending))}
    pending = list(order)
    for function in pending:
        following = [target for target, _ in function.next_functions if target is not None]
        for target in following:
            if order.setdefault(target, len(order)) == len(pending):
                pending.append(target)
        leaf = names.get(id(getattr(function, "variable", None)), "")
        yield function.name(), leaf, *(order[target] for target in following)


def invariants(model: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> dict[str, object]:
    """All that a captured step leaves as it is, by its name."""
    values: dict[str, object] = {
        "the parameters and modules of the model": (
            [(name, id(p)) for name, p in model.named_parameters(remove_duplicate=False)],
            [(name, id(m)) for name, m in model.named_modules(remove_duplicate=False)],
        )
    }
    for path, module in model.named_modules():
        of = f"module {path!r}" if path else "the model"
        values[f"whether {of} trains (train or eval)"] = module.training
    for name, p in model.named_parameters():
        grad = p.grad
        values[f"the gradient of parameter {name!r}"] = grad is None or (id(grad), grad._version)
        values[f"whether parameter {name!r} takes a gradient"] = p.requires_grad
        values[f"the memory of parameter {name!r}"] = (
            p.untyped_storage()._cdata,
            p.shape,
            p.stride(),
        )
    for k, tensor in enumerate(inputs):
        values[f"the shape of input {k}"] = tensor.shape, tensor.stride()
        values[f"whether input {k} takes a gradient"] = tensor.requires_grad
    return values


@contextlib.contextmanager
def contents_kept(inputs: Any) -> Iterator[None]:
    """The dicts and lists of a step's inputs hold in the end what they did in the beginning; the
    attributes of caches may change.

    Raises:
        SituateError: they hold something else.
    """
    from torch.utils._pytree import tree_flatten

    leaves, structure = tree_flatten(inputs)
    yield
    after, outer = tree_flatten(inputs)
    if outer != structure or any(map(operator.is_not, after, leaves)):
        raise SituateError(
            "the step puts something into a dict or list of its inputs, or takes it out, which a "
            "placed step would not: let it change a copy, as dict(batch)"
        )


@contextlib.contextmanager
def settings_kept() -> Iterator[None]:
    """PyTorch is set as it was before.

    Raises:
        Unsupported: something else was set within.
    """
    settings = _settings()
    before = {name: get() for name, (get, _) in settings.items()}
    try:
        yield
    finally:
        changed = [name for name, (get, _) in settings.items() if get() != before[name]]
        for name in changed:
            _, write = settings[name]
            write(before[name])
    if changed:
        raise Unsupported(
            f"the step leaves another setting of PyTorch behind ({changed[0]}): set it before the "
            "step, or in the step by what sets it back, as a `with` does"
        )


def _settings() -> dict[str, tuple[Callable[[], Any], Callable[[Any], object]]]:
    """By the function that sets it, what reads and what writes a setting of PyTorch."""
    import torch

    return {
        "torch.set_grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled),
        "torch.set_default_dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "torch.use_deterministic_algorithms": (
            torch.are_deterministic_algorithms_enabled,
            torch.use_deterministic_algorithms,
        ),
        "torch.set_num_threads": (torch.get_num_threads, torch.set_num_threads),
    }
