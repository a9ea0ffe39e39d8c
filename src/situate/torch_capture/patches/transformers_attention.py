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
CAUSAL, BIDIRECTIONAL = "_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa"
FUNCTIONS, SDPA, PADDING = "ALL_MASK_ATTENTION_FUNCTIONS", "sdpa", "padding_mask"


class MaskDecisions:
    """Masks that transformers makes for the values of an input alone, such as a padding mask.

    A trace does not know these values, so it may hold a mask that eager PyTorch omits.
    """

    def __init__(self) -> None:
        self._masks: list[Any] = []
        # True once the mask that is being made, or any mask, depends on values.
        self._by_values = self._any_by_values = False
        self._is_making = False

    def by_values(self, mask: Any) -> bool:
        """True if only the values of an input decided that there is this mask."""
        return self._any_by_values or any(mask is other for other in self._masks)

    @contextlib.contextmanager
    def noted(self, masking: Any) -> Iterator[None]:
        """A block in which decisions of the module `masking` are noted."""
        functions = getattr(masking, FUNCTIONS, {})
        with contextlib.ExitStack() as stack:
            # Older versions of transformers lack some of these functions.
            if hasattr(masking, TRACED):
                asked = partial(self._asked, getattr(masking, TRACED))
                stack.enter_context(replaced(masking, TRACED, asked))
            for name in (CAUSAL, BIDIRECTIONAL):
                if hasattr(masking, name):
                    decided = partial(self._decided, getattr(masking, name))
                    stack.enter_context(replaced(masking, name, decided))
            if SDPA in functions:
                make = functions[SDPA]
                stack.callback(functions.__setitem__, SDPA, make)
                functions[SDPA] = partial(self._made, make)
            yield

    def _made(self, make: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self._is_making, self._by_values = True, False
        mask = make(*arguments, **options)
        self._is_making = False
        if self._by_values and mask is not None:
            self._masks.append(mask)
        return mask

    def _asked(self, traced: Callable[..., bool], *of: Any) -> bool:
        """The answer of `is_tracing`, which transformers asks before it reads a mask's values.

        It asks for packed sequences before it makes masks, which then all depend on the answer.
        """
        if not self._is_making:
            self._any_by_values |= bool(of) and of[0] is not None
        return traced(*of)

    def _decided(self, omits: Callable[..., Any], *arguments: Any, **options: Any) -> bool:
        """True if a mask is omitted."""
        omitted = bool(omits(*arguments, **options))
        if PADDING in options:
            options[PADDING] = None
        else:
            arguments = (None, *arguments[1:])
        self._by_values |= not omitted and bool(omits(*arguments, **options))
        return omitted


@contextlib.contextmanager
def masks_as_run(
    is_known: Callable[[object], bool] = lambda _: False,
) -> Iterator[MaskDecisions]:
    """Let transformers make the masks of a model that runs.

    While a model is exported it makes more masks, and some models cannot take them. If the values
    of a mask are unknown, it makes one all the same.

    Args:
        is_known: True if the values of an input may be read.
    """
    # Without a model of transformers the module is not loaded, and nothing needs a patch.
    masking, decisions = sys.modules.get(MASKING), MaskDecisions()

    def unknown(mask: object = None) -> bool:
        """True if the values of a mask are not known, or there is no mask."""
        return getattr(mask, "constant", None) is None and not is_known(mask)

    with contextlib.ExitStack() as stack:
        # Either function, where a version of transformers has it, makes it build masks for export
        # that a model that runs does without.
        if hasattr(masking, EXPORTS):
            stack.enter_context(replaced(masking, EXPORTS, lambda: False))
        stack.enter_context(decisions.noted(masking))
        if hasattr(masking, TRACED):
            traced = getattr(masking, TRACED)
            stack.enter_context(replaced(masking, TRACED, lambda *of: unknown(*of) and traced(*of)))
        yield decisions


ATTENTION, CHOICE = "transformers.integrations.sdpa_attention", "use_gqa_in_sdpa"

Choice = Callable[..., bool]
"""From a mask and tensors to whether keys and values stay shared."""


@contextlib.contextmanager
def heads_share(decisions: MaskDecisions) -> Iterator[None]:
    """Trace shared keys and values without copies where a mask may hide nothing.

    With a mask, transformers repeats them for every head. While it traces, it makes masks that it
    omits otherwise if nothing is padded. A mask that does not depend on values is eager PyTorch's
    too, so keys and values are repeated as there.
    """
    with _choosing(
        lambda choice, mask, *tensors: choice(None if decisions.by_values(mask) else mask, *tensors)
    ):
        yield


@contextlib.contextmanager
def repeated() -> Iterator[list[str]]:
    """A block that yields names of attention that repeated shared keys and values but would not
    with `heads_share`."""
    names: list[str] = []
    masking, decisions = sys.modules.get(MASKING), MaskDecisions()

    def noted(choice: Choice, mask: Any, *tensors: Any) -> bool:
        shares = choice(mask, *tensors)
        if not shares and decisions.by_values(mask) and choice(None, *tensors):
            names[:] = ["attention of transformers with a mask and shared keys and values"]
        return shares

    with decisions.noted(masking), _choosing(noted):
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


@contextlib.contextmanager
def masks_left_out() -> Iterator[list[str]]:
    """Names of the masks that eager PyTorch omits from scores of 16 bits and a trace keeps.

    A trace keeps the masks because it holds for padded inputs, too. Masks of zeros change no
    number, but in an autocast region their float32 makes the scores float32.
    """
    masks, names = sys.modules.get(MASKING), list[str]()
    decision: Any = getattr(
        masks, BIDIRECTIONAL, None
    )  # absent from older versions of transformers

    def noted(*arguments: Any, **options: Any) -> Any:
        ignored = decision(*arguments, **options)
        mask = arguments[0] if arguments else options.get(PADDING)
        if ignored and mask is not None and _is_cast(mask):
            names[:] = ["masks of transformers where nothing is padded"]
        return ignored

    with contextlib.ExitStack() as stack:
        if decision is not None:
            stack.enter_context(replaced(masks, BIDIRECTIONAL, noted))
        yield names


def _is_cast(mask: Any) -> bool:
    """True if autocast is on for the device of a mask."""
    import torch

    return torch.is_autocast_enabled(mask.device.type)
