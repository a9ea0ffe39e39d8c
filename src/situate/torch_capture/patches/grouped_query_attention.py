"""Attention of transformers in which several heads share keys and values."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from situate.torch_capture.patches.patched import replaced

ATTENTION, CHOICE = "transformers.integrations.sdpa_attention", "use_gqa_in_sdpa"

Choice = Callable[..., bool]
"""From a mask and tensors whether keys and values stay shared."""


@contextlib.contextmanager
def heads_share() -> Iterator[None]:
    """Trace shared keys and values as they are. transformers repeats them for every head where
    there is a mask, and of a model that is traced it makes masks that it does without otherwise,
    where nothing is padded."""
    with _choosing(lambda choice, mask, *tensors: choice(None, *tensors)):
        yield


@contextlib.contextmanager
def repeated() -> Iterator[list[str]]:
    """Names of what repeated shared keys and values and would not with `heads_share`."""
    found: list[str] = []

    def noted(choice: Choice, mask: Any, *tensors: Any) -> bool:
        shares = choice(mask, *tensors)
        if not shares and choice(None, *tensors):
            found[:] = ["attention of transformers with a mask and shared keys and values"]
        return shares

    with _choosing(noted):
        yield found


@contextlib.contextmanager
def _choosing(choose: Callable[..., bool]) -> Iterator[None]:
    """Let `choose` decide, which is given transformers' own choice first."""
    attention = sys.modules.get(ATTENTION)
    # Not every version of transformers has the function; without it there is nothing to decide.
    choice: Choice | None = getattr(attention, CHOICE, None)
    with contextlib.ExitStack() as stack:
        if choice is not None:
            stack.enter_context(replaced(attention, CHOICE, partial(choose, choice)))
        yield
