"""One text for ops that cost the same, another for ops that do not."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.signature import call  # noqa: E402


def step():
    model = torch.nn.Sequential(torch.nn.Linear(64, 10), torch.nn.ReLU())
    return model, (torch.randn(8, 64),), lambda model, x: model(x).sum()


# Signatures depend on all that decides an op's cost, and on nothing else.
def test_a_row_major_tensor_is_dtype_and_shape() -> None:
    assert call("op", (torch.empty(8, 3), torch.empty(2, dtype=torch.bfloat16))) == (
        "op(f32[8,3], bf16[2])"
    )


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (torch.empty(8, 3).t(), "f32[3,8]s[1,3]"),
        (torch.empty(3).expand(8, 3), "f32[8,3]s[0,1]"),
        (torch.empty(2, 3, 4, 4).to(memory_format=torch.channels_last), "f32[2,3,4,4]s[48,1,12,3]"),
        (torch.empty(1, 8)[:, ::2], "f32[1,4]s[0,2]"),
    ],
)
def test_any_other_layout_has_its_strides(tensor: torch.Tensor, text: str) -> None:
    assert call("op", (tensor,)) == f"op({text})"


@pytest.mark.parametrize(
    ("dtype", "short"),
    [("int64", "i64"), ("uint8", "u8"), ("bool", "bool"), ("complex64", "c64")],
)
def test_every_kind_of_element_has_a_short_name(dtype: str, short: str) -> None:
    assert call("op", (torch.empty(1, dtype=getattr(torch, dtype)),)) == f"op({short}[1])"


def test_numbers_and_lists_are_part_of_it_and_devices_are_not() -> None:
    where = torch.device("cpu")
    args = ([1, 2], None, 0.5, [torch.empty(1), None])
    assert call("op", args, {"b": True, "a": 1, "device": where}) == (
        "op([1,2], None, 0.5, [f32[1],None], a=1, b=True)"
    )


def test_captured_ops_have_one_and_sources_have_none() -> None:
    signatures = {op.name: op.signature for op in capture(step, optimizer="adam").ops}
    assert signatures["0.weight"] == signatures["input/0"] == ""
    assert signatures["0/addmm"] == "aten.addmm(f32[10], f32[8,64], f32[64,10]s[1,64])"
    assert signatures["1/relu"] == "aten.relu(f32[8,10])"
    assert signatures["0.weight/adam"] == "update.adam(f32[10,64])"
