"""Storages of tensors, real or fake, and digests of their contents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

LARGEST = 2**26
"""The most bytes of a real storage whose content is hashed."""


def storages(tensor: torch.Tensor) -> list[Any]:
    """The tensor's storage. A fake tensor with known values also has the storage of the values,
    which views of it share."""
    constant = getattr(tensor, "constant", None)
    return [_storage(t) for t in (tensor, constant) if t is not None]


def _storage(tensor: torch.Tensor) -> Any:
    """The storage of a tensor; a sparse tensor, which has none, stands for itself."""
    try:
        return tensor.untyped_storage()
    except NotImplementedError:
        return tensor


def key(storage: Any) -> int:
    """A number that no other storage has while this one is alive."""
    return int(getattr(storage, "_cdata", id(storage)))


def geometry(tensor: torch.Tensor) -> tuple[object, ...]:
    """The part of its storage that a tensor shows, and its layout."""
    import torch

    if tensor.layout != torch.strided:
        return (tensor.dtype, tuple(tensor.shape))
    layout = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
    return (tensor.dtype, *layout, tensor.is_conj(), tensor.is_neg())


def is_fake(tensor: torch.Tensor) -> bool:
    """True for a tensor without values."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(tensor, FakeTensor) or tensor.device.type == "meta"


def content(tensor: torch.Tensor) -> str:
    """A digest of a real tensor's storage; a large storage is identified by its key."""
    import torch
    from torch.utils._mode_utils import no_dispatch

    memory = _storage(tensor)
    if not hasattr(memory, "nbytes") or memory.nbytes() > LARGEST or tensor.device.type != "cpu":
        return digest("real", key(memory))
    # Fake modes would otherwise intercept the read of real memory.
    with no_dispatch():
        # A tensor of bytes over the whole storage, whatever part of it `tensor` shows.
        contents = torch.empty(0, dtype=torch.uint8).set_(memory).numpy()
    return digest("real", hashlib.blake2b(contents.tobytes(), digest_size=16).hexdigest())


def digest(*parts: object) -> str:
    """A short text that is the same for equal parts alone."""
    text = "\0".join(part if isinstance(part, str) else repr(part) for part in parts)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of nested lists, tuples and dicts, with texts that describe the nesting."""
    if isinstance(value, (list, tuple)):
        yield f"of {len(value)}"
        for entry in value:
            yield from leaves(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield repr(key)
            yield from leaves(entry)
    else:
        yield value


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested lists, tuples and dicts."""
    import torch

    return (leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor))
