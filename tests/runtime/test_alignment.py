"""Batches, parameters and buffers may lie at any address."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.runtime.equality import compare  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402


class Towers(nn.Module):
    """Two layers, a buffer, and room before each tensor."""

    def __init__(self, parameters: int = 0, buffer: int = 0) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(10, 16), nn.Linear(16, 4)
        self.register_buffer("table", torch.randn(200)[buffer : buffer + 160].view(10, 16))
        for layer in (self.left, self.right):
            for name, value in [*layer.named_parameters()]:
                room = torch.empty(value.numel() + parameters)
                view = room[parameters:].view_as(value).copy_(value.detach())
                setattr(layer, name, nn.Parameter(view))

    def forward(self, x):
        return self.right((self.left(x) + x @ self.table).relu())


def loss(model, x, y):
    return F.cross_entropy(model(x).float(), y)


def batch(offset, dtype=torch.float32):
    return torch.randn(60, 10).to(dtype)[offset : offset + 3], torch.randint(4, (3,))


# Kernels' rounding may depend on addresses, so each case shifts them.
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize(
    ("offset", "parameters", "buffer"),
    [(1, 0, 0), (2, 0, 0), (5, 0, 0), (0, 3, 0), (0, 0, 1), (1, 3, 1)],
)
def test_verification_finds_no_difference(devices, offset, parameters, buffer):
    torch.manual_seed(1)
    model, inputs = Towers(parameters, buffer), batch(offset)

    def step(model, optimizer):
        return placed_step(model, optimizer, devices, given=(inputs, loss))

    assert compare(model, inputs, loss, sgd, step, threads=1).within(0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_batches_of_a_data_set_train_to_the_last_bit(dtype):
    torch.manual_seed(1)
    model = Towers(parameters=1).to(dtype)
    plain, data, labels = copy.deepcopy(model), torch.randn(60, 10), torch.randint(4, (60,))
    optimizer, of_plain = (
        torch.optim.SGD(tensor.parameters(), lr=0.1) for tensor in (model, plain)
    )
    data = data.to(dtype)
    first = data[:3], labels[:3]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with placed_step(model, optimizer, 2, given=(first, loss)) as step:
            for k in range(0, 60, 3):
                inputs = data[k : k + 3], labels[k : k + 3]
                of_plain.zero_grad()
                expected = loss(plain, *inputs)
                expected.backward()
                of_plain.step()
                assert torch.equal(step(*inputs), expected.detach())
    finally:
        torch.set_num_threads(threads)
