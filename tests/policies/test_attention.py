"""Both attention scores match their formulas, and their gradients are exact."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.policies.arithmetic import arithmetic  # noqa: E402
from situate.policies.attention import Attention  # noqa: E402

DRAWS = torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def _quietly():
    """Threads that wait for one another cost more than these matrices."""
    with arithmetic():
        yield


def attention(score, hidden=4, width=3):
    module = Attention(hidden, score, width).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=DRAWS)
    return module


def normal(*shape):
    return torch.randn(shape, generator=DRAWS, dtype=torch.float64)


def contexts(module, states, outputs):
    return module(states, outputs, module.keys(outputs))


# Scores against the papers' formulas.
def test_additive_scores_are_bahdanaus_with_doubled_parameters():
    module, states, outputs = attention("additive"), normal(2, 5, 4), normal(2, 6, 4)
    keys, queries = module.key(outputs) / 2, module.query(states) / 2
    tanh = torch.tanh(queries[:, :, None] + keys[:, None])
    weights = torch.softmax(tanh @ (module.v / 2), 2)
    torch.testing.assert_close(contexts(module, states, outputs), weights @ outputs)


def test_general_scores_are_luongs():
    module, states, outputs = attention("general"), normal(2, 5, 4), normal(2, 6, 4)
    weights = torch.softmax(states @ (outputs @ module.key.weight.T).transpose(1, 2), 2)
    torch.testing.assert_close(contexts(module, states, outputs), weights @ outputs)


# Gradients and precision.
@pytest.mark.parametrize(("asking", "encoded"), [(1, 1), (3, 4), (40, 19)])
def test_gradients_are_those_of_finite_differences(asking, encoded):
    module = attention("additive", width=2)
    states, outputs = normal(2, asking, 4).requires_grad_(), normal(2, encoded, 4).requires_grad_()
    parameters = tuple(module.parameters())
    assert torch.autograd.gradcheck(
        lambda states, outputs, *_: contexts(module, states, outputs),
        (states, outputs, *parameters),
    )


def test_single_precision_says_what_double_says():
    module, states, outputs = attention("additive", hidden=8), normal(2, 70, 8), normal(2, 33, 8)
    exact = contexts(module, states, outputs)
    rounded = contexts(module.float(), states.float(), outputs.float())
    torch.testing.assert_close(rounded.double(), exact, rtol=1e-4, atol=1e-5)
