"""Losses of connectionist temporal classification as the kernels that eager PyTorch runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.patched import dispatched, replaced
from situate.torch_capture.refusals.remedies import Unsupported

if TYPE_CHECKING:
    import torch

NONE, MEAN = 0, 1
"""Reductions, as PyTorch numbers them."""


@contextlib.contextmanager
def ctc_of_known_lengths() -> Iterator[None]:
    """Trace a CTC loss of lengths that are numbers as one op each way. PyTorch refuses any on fake
    tensors, since of lengths in tensors a size depends on values."""
    import torch

    loss = torch.ctc_loss

    def averaged(
        log_probs: Any,
        targets: Any,
        input_lengths: Any,
        target_lengths: Any,
        blank: int = 0,
        reduction: int = MEAN,
        zero_infinity: bool = False,
    ) -> Any:
        """PyTorch's own fills a tensor with the lengths, which for fake ones fails."""
        given = log_probs, targets, input_lengths, target_lengths, blank
        if reduction != MEAN or isinstance(target_lengths, torch.Tensor):
            return loss(*given, reduction, zero_infinity)
        losses = loss(*given, NONE, zero_infinity)
        return (losses / losses.new_tensor(target_lengths).clamp_min(1)).mean()

    with replaced(torch, "ctc_loss", averaged), dispatched(_sized):
        yield


def _sized(run: Any, mode: Any, func: Any, args: Sequence[Any], kwargs: Any) -> Any:
    from torch.ops import aten

    # Lengths in tensors: the second output's size depends on the longest of them.
    if func is aten._ctc_loss.Tensor:
        raise Unsupported(
            "the lengths of a CTC loss decide sizes, and capture does not know what tensors hold: "
            "give input_lengths and target_lengths as tuples of numbers"
        )
    makes: dict[Any, Callable[..., Any]] = {
        aten._ctc_loss.default: _losses,
        aten._ctc_loss_backward.default: _gradient,
    }
    if func not in makes:
        return run(func, args, kwargs)
    with mode:
        return makes[func](*args)


def _losses(
    scores: torch.Tensor, _: object, frames: Sequence[int], lengths: Sequence[int], *__: object
) -> tuple[torch.Tensor, torch.Tensor]:
    """Losses of every sequence, and the probabilities that their gradient needs: of each of its
    states, which are its labels and the blanks around them, at every step."""
    steps, batch, _classes = scores.shape
    for name, entries in (("input_lengths", frames), ("target_lengths", lengths)):
        if len(entries) != batch:  # the kernels' own check
            raise RuntimeError(f"{name} must be of size batch_size, {batch}, got {len(entries)}")
    # A blank before, between and after the labels of the longest target.
    states = 2 * max(lengths, default=0) + 1
    return scores.new_empty(batch), scores.new_empty(batch, steps, states)


def _gradient(_: object, scores: torch.Tensor, *__: object) -> torch.Tensor:
    return scores.new_empty(scores.shape)
