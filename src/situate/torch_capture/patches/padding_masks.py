"""Masks of transformers that eager PyTorch leaves out where nothing is padded."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from situate.torch_capture.patches.patched import replaced

MASKS, DECISION = "transformers.masking_utils", "_ignore_bidirectional_mask_sdpa"


@contextlib.contextmanager
def masks_left_out() -> Iterator[list[str]]:
    """Names of the masks that eager PyTorch leaves out of scores of 16 bits and a trace keeps.

    A trace keeps the masks because it holds for padded inputs too. Masks of zeros change no
    number, but in an autocast region their float32 makes the scores float32.
    """
    masks, names = sys.modules.get(MASKS), list[str]()
    decision: Any = getattr(masks, DECISION, None)  # absent from older versions of transformers

    def noted(*arguments: Any, **named: Any) -> Any:
        ignored = decision(*arguments, **named)
        mask = arguments[0] if arguments else named.get("padding_mask")
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
