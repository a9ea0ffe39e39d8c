"""Recurrent layers as the ops of their steps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from situate.torch_capture.patches.patched import replaced


@contextlib.contextmanager
def layers_step_by_step() -> Iterator[None]:
    """Trace recurrent layers as the ops of their steps, with the dropout between them. An LSTM
    whose input takes no gradient PyTorch holds to infer, and traces as a kernel whose backward pass
    then fails; and its decomposition counts layers so that dropout is left out."""
    from torch._decomp import decompositions

    select, layers = "select_one_layer_lstm_function", "_rnn_helper"
    with contextlib.ExitStack() as stack:
        if helper := getattr(decompositions, layers, None):
            kept = partial(_with_dropout, helper)
            stack.enter_context(replaced(decompositions, layers, kept))
        # It selects the kernel of oneDNN for what it takes for inference; here the decomposition
        # into ops is selected always.
        if hasattr(decompositions, select):
            step = decompositions.one_layer_lstm
            stack.enter_context(replaced(decompositions, select, lambda *_: step))
        yield


class _Layers(int):
    """A number of layers that passes for fewer than any, for a test that PyTorch has the wrong way
    round."""

    def __lt__(self, other: object) -> bool:
        return True


def _with_dropout(helper: Callable[..., Any], *given: Any) -> Any:
    x, hidden, parameters, biases, layers, *rest = given
    # PyTorch's helper keeps dropout only where `num_layers < i - 1`, which no layer i fulfils.
    # Other uses of the number are arithmetic, whose results are plain integers.
    return helper(x, hidden, parameters, biases, _Layers(layers), *rest)
