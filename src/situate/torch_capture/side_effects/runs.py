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
    """The outcome of a run: value numbers of the results and of the final state and inputs, and the
    functions that differentiate the results."""

    returned: tuple[str, ...]
    state: tuple[str, ...]
    gradients: tuple[object, ...]


class Failed(Exception):
    """The step raised the exception that is the cause of this one."""


class Runs:
    """Repeated runs of a step.

    Args:
        step: a module that calls the user's, `model`.
        tensors: its inputs; every run has new ones.

    Attributes:
        values: the numbers of all computed values.
        state: parameters and buffers, by name.
        changed: names of the state that is known to differ in the next step.
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
            Failed: the step failed.
            Unsupported: at a line of the step that does something a placed step would not.
            SituateError: the same, if no line is known.
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
        # State that one step overwrites differs in the next, so values computed from it do not
        # repeat.
        self.changed = self.changed or self._overwritten()
        of = self.values.of
        state = tuple(map(of, (*self.state.values(), *inputs)))
        return Outcome(tuple(map(of, returned)), state, tuple(_gradients(returned, self.state)))

    def _fresh(self) -> list[torch.Tensor]:
        """New inputs without known values."""
        import torch

        with self._mode:
            return [
                torch.empty_strided(
                    t.shape, t.stride(), dtype=t.dtype, device=t.device
                ).requires_grad_(t.requires_grad)
                for t in self._tensors
            ]

    def _call(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The tensors that the step returns, with the choices that libraries make during export."""
        import torch

        try:
            with (
                seeds_are_given(),
                torch.set_grad_enabled(self._training),
                replaced(self._mode, "allow_non_fake_inputs", True),
                # Libraries read these flags, and run other code when exported.
                replaced(torch.compiler, "_is_compiling_flag", True),
                replaced(torch.compiler, "_is_exporting_flag", True),
                # The dispatch mode comes last, so that it sees the operators of all blocks above.
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
    """The functions that differentiate a step's results, each with its successors."""
    names = {id(tensor): name for name, tensor in state.items()}
    pending = [tensor.grad_fn for tensor in returned if tensor.grad_fn is not None]
    order: dict[Any, int] = {function: k for k, function in enumerate(dict.fromkeys(pending))}
    pending = list(order)
    for function in pending:
        following = [target for target, _ in function.next_functions if target is not None]
        for target in following:
            # Only a new function gets the next free number, which is the length of the list being
            # walked.
            if order.setdefault(target, len(order)) == len(pending):
                pending.append(target)
        leaf = names.get(id(getattr(function, "variable", None)), "")
        yield function.name(), leaf, *(order[target] for target in following)


def invariants(model: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> dict[str, object]:
    """Properties that a captured step does not change, by description."""
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
        # A write in place keeps the identity but raises the version.
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
    """A block that must not change the dicts and lists of a step's inputs. Attributes of caches may
    change.

    Raises:
        SituateError: the block changed one.
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
    """A block that must not change PyTorch's settings.

    Raises:
        Unsupported: the block changed one, which is restored.
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
    """By the function that sets it, the getter and the setter of a PyTorch setting."""
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
