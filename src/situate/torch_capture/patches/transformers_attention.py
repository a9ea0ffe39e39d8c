"""Attention masks and shared keys and values of transformers, traced as eager PyTorch runs them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from situate.torch_capture.patches.patched import replaced

MASKING = "transformers.masking_utils"
EXPORTS, TRACED = "is_torchdynamo_exporting", "is_tracing"


@contextlib.contextmanager
def masks_as_run(is_known: Callable[[object], bool] = lambda _: False) -> Iterator[None]:
    """Let transformers make the masks of a model that runs.

    While a model is exported it makes more masks, and some models cannot take them. If the values
    of a mask are unknown, it makes one all the same.

    Args:
        is_known: True if the values of an input may be read.
    """
    # Without a model of transformers the module is not loaded, and nothing needs a patch.
    masking = sys.modules.get(MASKING)

    def unknown(mask: object = None) -> bool:
        """True if the values of a mask are not known, or there is no mask."""
        return getattr(mask, "constant", None) is None and not is_known(mask)

    with contextlib.ExitStack() as stack:
        # Either function, where a version of transformers has it, makes it build masks for export
        # that a model that runs does without.
        if hasattr(masking, EXPORTS):
            stack.enter_context(replaced(masking, EXPORTS, lambda: False))
        if hasattr(masking, TRACED):
            traced = getattr(masking, TRACED)
            stack.enter_context(replaced(masking, TRACED, lambda *of: unknown(*of) and traced(*of)))
        yield


ATTENTION, CHOICE = "transformers.integrations.sdpa_attention", "use_gqa_in_sdpa"

Choice = Callable[..., bool]
"""From a mask and tensors to whether keys and values stay shared."""


@contextlib.contextmanager
def heads_share() -> Iterator[None]:
    """Trace shared keys and values without copies.

    With a mask, transformers repeats them for every head. While it traces, it makes masks that it
    omits otherwise if nothing is padded.
    """
    with _choosing(lambda choice, mask, *tensors: choice(None, *tensors)):
        yield


@contextlib.contextmanager
def repeated() -> Iterator[list[str]]:
    """A block that yields names of attention that repeated shared keys and values but would not
    with `heads_share`."""
    names: list[str] = []

    def noted(choice: Choice, mask: Any, *tensors: Any) -> bool:
        shares = choice(mask, *tensors)
        if not shares and choice(None, *tensors):
            names[:] = ["attention of transformers with a mask and shared keys and values"]
        return shares

    with _choosing(noted):
        yield names


@contextlib.contextmanager
def _choosing(choose: Callable[..., bool]) -> Iterator[None]:
    """A block in which `choose` decides; its first argument is transformers' own choice."""
    attention = sys.modules.get(ATTENTION)
    # Not every version of transformers has the function; without it there is nothing to decide.
    choice: Choice | None = getattr(attention, CHOICE, None)
    with contextlib.ExitStack() as stack:
        if choice is not None:
            stack.enter_context(replaced(attention, CHOICE, partial(choose, choice)))
        yield


DECISION = "_ignore_bidirectional_mask_sdpa"


@contextlib.contextmanager
def masks_left_out() -> Iterator[list[str]]:
    """Names of the masks that eager PyTorch omits from scores of 16 bits and a trace keeps.

    A trace keeps the masks because it holds for padded inputs, too. Masks of zeros change no
    number, but in an autocast region their float32 makes the scores float32.
    """
    masks, names = sys.modules.get(MASKING), list[str]()
    decision: Any = getattr(masks, DECISION, None)  # absent from older versions of transformers

    def noted(*arguments: Any, **options: Any) -> Any:
        ignored = decision(*arguments, **options)
        mask = arguments[0] if arguments else options.get("padding_mask")
        if ignored and mask is not None and _is_cast(mask):
            names[:] = ["masks of transformers where nothing is padded"]
        return ignored

    with contextlib.ExitStack() as stack:
        if decision is not None:
            stack.enter_context(replaced(masks, DECISION, noted))
        yield names


def _is_cast(mask: Any) -> bool:
    """True if autocast is on for the device of a mask."""
    import torch

    return torch.is_autocast_enabled(mask.device.type)
