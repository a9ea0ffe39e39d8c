"""Masks of transformers, which makes some only while a model is exported: it does without where
nothing is padded and the model runs, and some models cannot take them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from situate.torch_capture.patches.patched import replaced

MASKING = "transformers.masking_utils"
EXPORTS, TRACED = "is_torchdynamo_exporting", "is_tracing"


@contextlib.contextmanager
def masks_as_run(is_known: Callable[[object], bool] = lambda _: False) -> Iterator[None]:
    """Let it make the masks of a model that runs. Of a mask whose values capture does not know it
    makes one all the same.

    Args:
        is_known: asks if the values of an input may be looked at.
    """
    masking = sys.modules.get(MASKING)

    def unknown(mask: object = None) -> bool:
        """True if the values of a mask are not known; also where there is no mask."""
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
