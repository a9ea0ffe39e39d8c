"""Interpolation, margin losses, recurrent layers and CTC losses, traced as the ops that eager
PyTorch runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.patched import dispatched, replaced, whole
from situate.torch_capture.refusals.remedies import Unsupported

if TYPE_CHECKING:
    import torch

INTERPOLATIONS = (
    *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    *("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
)


@contextlib.contextmanager
def interpolation_whole() -> Iterator[None]:
    """Trace interpolation as one op each way.

    PyTorch's tracer decomposes it into up to a hundred small ops. These take longer, round
    differently, and lose the memory format of a gradient.
    """
    from torch.ops import aten

    with contextlib.ExitStack() as stack:
        # Both overloads dispatch separately: `vec` takes scale factors, `default` takes sizes.
        for name in INTERPOLATIONS:
            kernel = getattr(aten, name)
            for overload in (kernel.vec, kernel.default):
                stack.enter_context(whole(overload))
        yield


@contextlib.contextmanager
def margins_whole() -> Iterator[None]:
    """Trace the losses of margins over classes as one op each way.

    PyTorch's tracer decomposes them into small ops. For several labels these give other numbers,
    otherwise they round differently.
    """
    from torch.ops import aten

    labels, label = aten.multilabel_margin_loss_forward.default, aten.multi_margin_loss.default
    with whole(labels), whole(label):
        yield


@contextlib.contextmanager
def layers_step_by_step() -> Iterator[None]:
    """Trace recurrent layers as the ops of their steps, with the dropout between them.

    PyTorch treats an LSTM whose input takes no gradient as inference, and traces a kernel whose
    backward pass then fails. Its decomposition miscounts layers, so that it omits dropout.
    """
    from torch._decomp import decompositions

    select, layers = "select_one_layer_lstm_function", "_rnn_helper"
    with contextlib.ExitStack() as stack:
        if helper := getattr(decompositions, layers, None):
            with_dropout = partial(_with_dropout, helper)
            stack.enter_context(replaced(decompositions, layers, with_dropout))
        # It selects the kernel of oneDNN for what it takes for inference; here the decomposition
        # into ops is selected always.
        if hasattr(decompositions, select):
            step = decompositions.one_layer_lstm
            stack.enter_context(replaced(decompositions, select, lambda *_: step))
        yield


class _Layers(int):
    """A number of layers that compares as smaller than any number, for a comparison that PyTorch
    has the wrong way round."""

    def __lt__(self, other: object) -> bool:
        return True


def _with_dropout(helper: Callable[..., Any], *arguments: Any) -> Any:
    x, hidden, parameters, biases, layers, *rest = arguments
    # PyTorch's helper keeps dropout only where `num_layers < i - 1`, which no layer i fulfils.
    # Other uses of the number are arithmetic, whose results are plain integers.
    return helper(x, hidden, parameters, biases, _Layers(layers), *rest)


LENGTHS = (
    "the lengths of a CTC loss decide sizes, and capture does not know what this tensor holds: "
    "give input_lengths and target_lengths as tuples of numbers among the inputs, as "
    "tuple(lengths.tolist()); slices cut them with their samples. Lengths that are all the same "
    "the step may make itself, by torch.full"
)
NO_REDUCTION, MEAN_REDUCTION = 0, 1
"""Reductions, as PyTorch numbers them."""


@contextlib.contextmanager
def ctc_of_known_lengths() -> Iterator[None]:
    """Trace a CTC loss with lengths that are numbers as one op each way.

    PyTorch refuses any CTC loss on fake tensors, because lengths in tensors make a size depend on
    values.
    """
    import torch

    loss = torch.ctc_loss

    def averaged(
        log_probs: Any,
        targets: Any,
        input_lengths: Any,
        target_lengths: Any,
        blank: int = 0,
        reduction: int = MEAN_REDUCTION,
        zero_infinity: bool = False,
    ) -> Any:
        """The mean of the losses per label. PyTorch's own code fills a tensor with the lengths,
        which fails for fake tensors."""
        lengths = _numbers(input_lengths), _numbers(target_lengths)
        arguments = log_probs, targets, *lengths, blank
        if reduction != MEAN_REDUCTION:
            return loss(*arguments, reduction, zero_infinity)
        losses = loss(*arguments, NO_REDUCTION, zero_infinity)
        return (losses / losses.new_tensor(lengths[1]).clamp_min(1)).mean()

    with replaced(torch, "ctc_loss", averaged), dispatched(_sized):
        yield


def _numbers(lengths: torch.Tensor | Sequence[int]) -> tuple[int, ...]:
    """Lengths as numbers. They decide the size of the second output.

    Raises:
        Unsupported: the lengths are in a tensor whose values capture does not know.
    """
    import torch

    if not isinstance(lengths, torch.Tensor):
        return tuple(lengths)
    try:
        return tuple(lengths.tolist())
    except Exception as error:
        raise Unsupported(LENGTHS) from error


def _sized(run: Any, mode: Any, func: Any, args: Sequence[Any], kwargs: Any) -> Any:
    # By name first, because a look-up in `torch.ops` takes longer, and every operator comes here.
    if getattr(func, "_opname", "") not in ("_ctc_loss", "_ctc_loss_backward"):
        return run(func, args, kwargs)
    from torch.ops import aten

    if func is aten._ctc_loss.Tensor:
        raise Unsupported(LENGTHS)
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
    """The loss of every sequence, and the probabilities that its gradient needs, one per step and
    state.

    The states are the labels and the blanks around them.
    """
    steps, batch, _classes = scores.shape
    for name, entries in (("input_lengths", frames), ("target_lengths", lengths)):
        if len(entries) != batch:  # the kernels' own check
            raise RuntimeError(f"{name} must be of size batch_size, {batch}, got {len(entries)}")
    # A blank before, between and after the labels of the longest target.
    states = 2 * max(lengths, default=0) + 1
    return scores.new_empty(batch), scores.new_empty(batch, steps, states)


def _gradient(_: object, scores: torch.Tensor, *__: object) -> torch.Tensor:
    return scores.new_empty(scores.shape)
