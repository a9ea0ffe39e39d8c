"""Layers of learned policies, with their gradients."""

from collections.abc import Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


@overload
def additive_scores(queries: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.float32]: ...

@overload
def additive_scores(queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.float64]:
    """
    Additive scores (b, s, g) of queries (b, s, a) and keys (b, g, a), with weights v (a,).
    """

@overload
def additive_gradients(queries: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], d_scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]: ...

@overload
def additive_gradients(queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], d_scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """Gradients by queries, keys and v, from that by the scores (b, s, g)."""

@overload
def sample_groups(*, states: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, trust: float, m: int, seed: int, noise: float, threads: int) -> NDArray[numpy.int64]: ...

@overload
def sample_groups(*, states: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, trust: float, m: int, seed: int, noise: float, threads: int) -> NDArray[numpy.int64]:
    """
    Groups (m, u) drawn from the softmax of states (u, h) weight (g, h) + bias (g,).
    """

@overload
def group_gradients(*, states: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, trust: float, groups: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> tuple[float, NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]: ...

@overload
def group_gradients(*, states: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, trust: float, groups: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> tuple[float, NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    The weighted log-likelihood of groups (m, u), and its gradients by states, weight, bias.
    """

@overload
def lstm_forward(recurrent: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], projected: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], cell: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]: ...

@overload
def lstm_forward(recurrent: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], projected: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], hidden: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], cell: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Gates (T, k, 4h), cells and hidden states (T, k, h) of a layer, from its input projections (T, k, 4h) and first states (k, h).
    """

@overload
def lstm_backward(recurrent: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], cell: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], gate: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], cells: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], d_hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], d_last_cell: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]: ...

@overload
def lstm_backward(recurrent: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], cell: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], gate: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], cells: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], d_hidden: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], d_last_cell: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Gradients by input projections (T, k, 4h) and first states (k, h), from those by the hidden states (T, k, h) and the last cell (k, h).
    """

class SamplerWeights:
    """
    Weights of a decoder LSTM with attention.

    All arrays of a sampler are float32, or all float64.

    embedding: (d + 1, 4h) the first layer's input projection of a device; row d: of none.
    recurrent: (4h, h) of every layer.
    inputs, biases: (4h, h), (4h,) of every layer but the first.
    query, v: (a, h), (a,) of an additive score; None for dot products.
    head: (d, 2h) maps a state and its context to logits.
    """

    def __init__(self, *, embedding: Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)], recurrent: Sequence[Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)]], inputs: Sequence[Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)]], biases: Sequence[Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)]], query: Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, v: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)] | None, head: Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class SamplerInputs:
    """
    Inputs of k samples of g groups on d devices.

    outputs, keys: (b, g, h), (b, g, a) the encoded groups, b = 1 for all samples or b = k.
    hidden, cell: (layers, k, h) states before the first group.
    own: (k, g, d) added to the head's outputs.
    gumbel: (k, g, d) Gumbel noise, minus infinity where a device is not allowed.
    noise: (k, g, d) added to the logits, in root mean squares of these; or None.
    """

    def __init__(self, *, outputs: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], hidden: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], cell: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], own: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], gumbel: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], noise: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None) -> None: ...

def sample_devices(weights: SamplerWeights, inputs: SamplerInputs, *, temperature: float, bound: float, threads: int) -> tuple[NDArray[numpy.int64], list[tuple[NDArray, NDArray, NDArray]]]:
    """
    Devices (k, g), and gates (g, k, 4h), cells and hidden states (g, k, h) of every layer.

    temperature, bound: logits l become bound tanh(l / temperature), or l / temperature if bound is 0.
    """
