"""Which values of a captured step share memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.readers.torch import capture  # noqa: E402

SPLITS: dict[str, Callable[[Tensor], Any]] = {
    "split": lambda x: x.split([1, 3], 1),
    "unsafe_split": lambda x: x.unsafe_split(2, 1),
    "unsafe_split_with_sizes": lambda x: x.unsafe_split_with_sizes([1, 3], 1),
    "unsafe_chunk": lambda x: x.unsafe_chunk(2, 1),
}


@pytest.mark.parametrize("how", SPLITS)
def test_a_part_is_read_from_what_was_split(how: str) -> None:
    def build() -> Any:
        return nn.Linear(4, 4), torch.ones(2, 4), lambda model, x: SPLITS[how](model(x))[1].mean()

    graph = capture(build, name="parts")
    assert not any("split" in op.kind for op in graph.ops if op.phase == "forward")
    (whole,) = (tensor for tensor in graph.tensors if tensor.name == "addmm:0")
    assert [graph.ops[j].name for j in whole.consumers] == ["loss/mean"]
