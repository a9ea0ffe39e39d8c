"""Views are recognised by their common storage, and real tensors by their content."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from situate.torch_capture.patches.constant_values import constants_known  # noqa: E402
from situate.torch_capture.side_effects.storages import (  # noqa: E402
    content,
    digest,
    geometry,
    is_fake,
    key,
    storages,
    tensors_in,
)


def keys(tensor: torch.Tensor) -> set[int]:
    return set(map(key, storages(tensor)))


# Storages identify memory, also of fake and sparse tensors.
def test_views_share_their_bases_storage_and_copies_do_not() -> None:
    base = torch.zeros(4)
    assert keys(base) == keys(base[1:])
    assert keys(base).isdisjoint(keys(base.clone()))
    assert geometry(base) != geometry(base[1:])
    assert geometry(base) != geometry(base.view(torch.int32))


def test_so_do_views_of_fake_tensors_whose_values_are_known() -> None:
    with FakeTensorMode(), constants_known():
        base = torch.zeros(4)
        part = base[1:]
    assert is_fake(base)
    assert keys(base) & keys(part)


def test_a_sparse_tensor_is_its_own_storage() -> None:
    sparse = torch.zeros(3).to_sparse()
    assert storages(sparse) == [sparse]
    assert geometry(sparse) == (torch.float32, (3,))


def test_real_tensors_with_the_same_in_them_are_alike() -> None:
    assert content(torch.ones(3)) == content(torch.ones(3))
    assert content(torch.ones(3)) != content(torch.zeros(3))


def test_digests_tell_parts_apart() -> None:
    assert digest("a", "b") != digest("ab")
    assert digest(1, 2.0) == digest(1, 2.0)


def test_tensors_are_found_in_what_holds_them() -> None:
    one, other = torch.ones(1), torch.zeros(1)
    assert list(tensors_in({"a": [one, 3], "b": ({"c": other}, None)})) == [one, other]
