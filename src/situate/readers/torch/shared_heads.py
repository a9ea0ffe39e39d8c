"""Attention of transformers in which several heads share keys and values."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from situate.readers.torch.patched import replaced

ATTENTION, CHOICE = "transformers.integrations.sdpa_attention", "use_gqa_in_sdpa"


@contextlib.contextmanager
def heads_share() -> Iterator[None]:
    """Trace shared keys and values as they are. transformers repeats them for every head where
    there is a mask, and of a model that is traced it makes masks that it does without otherwise,
    where nothing is padded."""
    attention = sys.modules.get(ATTENTION)
    choice = getattr(attention, CHOICE, None)
    if choice is None:
        yield
        return

    def without_mask(mask: Any, *tensors: Any) -> Any:
        return choice(None, *tensors)

    with replaced(attention, CHOICE, without_mask):
        yield
