"""Headers of the safetensors files in a folder: tensors without their weights.

https://huggingface.co/docs/safetensors#format
"""

from __future__ import annotations

import math
import re
import struct
from pathlib import Path
from typing import Any

import msgspec

from situate.errors import ReadError
from situate.files import strict_json
from situate.files.contents import contents, reason_of
from situate.language.model import Role, Weight
from situate.language.tensor_types import TYPES

INDEX = "model.safetensors.index.json"
MAX_INDEX, MAX_HEADER = 2**28, 10**8
"""Bytes at most; the longest header is the format's own limit."""

ROLES: tuple[tuple[str, Role], ...] = (
    (r"shared_expert", "shared experts"),
    (r"experts\.", "experts"),
    (r"(mlp|block_sparse_moe|feed_forward)\.(gate|router)\.|router\.", "router"),
    (r"embed_tokens|wte\.|embeddings?\.weight", "embedding"),
    (r"lm_head|embed_out", "output"),
    (r"norm", "norm"),
    (r"linear_attn|mamba|mixer|conv1d", "recurrent"),
    (r"attn|attention", "attention"),
    (r"mlp|feed_forward|fc", "feed-forward"),
)
"""Roles by a pattern in a tensor's name in safetensors files; the first that occurs counts."""

OTHER_TOWERS = re.compile(r"(^|\.)(vision|visual|audio|multi_modal|mm_)")
"""Tensors of pictures and sounds, which the language model has no part in."""


class _Entry(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def read_weights(folder: Path, layers: int) -> list[Weight]:
    """The tensors of all safetensors files of a folder; none if there are no such files.

    Args:
        folder: with an index of the files, or one file or more.
        layers: of the model; tensors of layers from that number on are for guesses.

    Raises:
        ReadError: a file is missing, truncated within its header, or contradicts itself.
    """
    weights: dict[str, Weight] = {}
    for path in _files(folder):
        try:
            entries = _header(path)
        except ReadError as error:
            raise ReadError(f"{path.name}: {error}") from None
        for name, entry in entries.items():
            if name in weights:
                raise ReadError(f"{path.name}: has tensor {name!r}, as another file does")
            if not OTHER_TOWERS.search(name):
                weights[name] = _weight(name, entry, layers)
    return list(weights.values())


def _files(folder: Path) -> list[Path]:
    index = folder / INDEX
    if not index.exists():
        return sorted(folder.glob("*.safetensors"))
    content = strict_json.decode(contents(index, MAX_INDEX), dict[str, Any], unique=False)
    names = content.get("weight_map")
    if not isinstance(names, dict):
        raise ReadError(f"{INDEX}: has no weight_map")
    files = sorted({str(name) for name in names.values()})
    for name in files:
        if Path(name).name != name:
            raise ReadError(f"{INDEX}: {name!r} is no name of a file beside it")
        if not (folder / name).exists():
            raise ReadError(f"{name} is missing, and {INDEX} lists it")
    return [folder / name for name in files]


def _header(path: Path) -> dict[str, _Entry]:
    try:
        with path.open("rb") as file:
            head = file.read(8)
            if len(head) < 8:
                raise ReadError("ends within its header")
            (length,) = struct.unpack("<Q", head)
            if length > MAX_HEADER:
                raise ReadError(f"says that its header has {length} bytes")
            data = file.read(length)
    except (OSError, ValueError) as error:
        if isinstance(error, ReadError):
            raise
        raise ReadError(f"cannot be read: {reason_of(error)}") from None
    if len(data) < length:
        raise ReadError("ends within its header")
    entries = strict_json.decode(data, dict[str, msgspec.Raw], unique=False)
    entries.pop("__metadata__", None)
    return {name: _entry(name, raw) for name, raw in entries.items()}


def _entry(name: str, raw: msgspec.Raw) -> _Entry:
    try:
        entry = msgspec.json.decode(raw, type=_Entry)
    except msgspec.ValidationError as error:
        raise ReadError(f"tensor {name!r}: {error}") from None
    if entry.dtype not in TYPES or TYPES[entry.dtype].block > 1:
        raise ReadError(f"tensor {name!r} has the unknown type {entry.dtype[:20]!r}")
    begin, end = entry.data_offsets
    size = math.prod(entry.shape) * TYPES[entry.dtype].size
    # Two negative sizes would have a positive product.
    sound = min(entry.shape, default=0) >= 0 and 0 <= begin <= end < 2**63
    if end - begin != size or not sound:
        raise ReadError(f"tensor {name!r}: its shape and its bytes contradict each other")
    return entry


def _weight(name: str, entry: _Entry, layers: int) -> Weight:
    match = re.search(r"(?:^|\.)(?:layers|h|blocks)\.(\d{1,9})\.", name)
    layer = int(match[1]) if match else None
    role: Role = next((role for part, role in ROLES if re.search(part, name)), "other")
    if name.startswith("mtp.") or (layer is not None and layer >= layers):
        role = "draft"
    begin, end = entry.data_offsets
    shape = tuple(reversed(entry.shape)) or (1,)
    return Weight(name, shape, TYPES[entry.dtype], end - begin, role, layer)
