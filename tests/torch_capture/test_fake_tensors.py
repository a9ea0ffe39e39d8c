"""A model that is built on the device meta is planned as the same one on the CPU."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402

WORDS = (torch.zeros(2, 4, dtype=torch.int64),)


class Attending(nn.Module):
    """Attention between an embedding and a head of the same weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(10, 8), nn.Linear(8, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.ones(8))
        self.shift = torch.zeros(8)

    def forward(self, words: Any) -> Any:
        x = (self.embedding(words) * self.scale + self.shift)[:, None]
        return self.head(nn.functional.scaled_dot_product_attention(x, x, x))


def build_on(on: str, inputs_on: str = "cpu") -> Any:
    with torch.device(on):
        model = Attending()
    words = tuple(word.to(inputs_on) for word in WORDS)
    return model, words, lambda model, words: model(words).mean()


# A model on `meta` gives the same graph as one on the CPU.
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("inputs_on", ["cpu", "meta"])
def test_its_graph_is_that_of_the_cpu(training: bool, inputs_on: str) -> None:
    expected = capture(lambda: build_on("cpu"), training=training, name="m")
    graph = capture(lambda: build_on("meta", inputs_on), training=training, name="m")
    assert any("flash_attention" in op.kind for op in graph.ops)
    assert dataclasses.asdict(graph) == dataclasses.asdict(expected)


def test_so_is_that_of_a_model_that_is_built_for_real() -> None:
    def real(on: str) -> Any:
        assert torch.ones(1).numpy() == 1.0
        return build_on(on)

    expected = capture(lambda: real("cpu"), name="m")
    assert capture(lambda: real("meta"), name="m") == expected


def test_a_parameter_without_a_shape_is_refused_as_ever() -> None:
    def build() -> Any:
        with torch.device("meta"):
            return nn.LazyLinear(3), (torch.ones(2, 3),), lambda model, x: model(x).mean()

    with pytest.raises(SituateError, match="m: "):
        capture(build, name="m")
