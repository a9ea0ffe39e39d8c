"""Graphs of the zoo: from the package, from the cache on disk, or captured.

A graph from the package needs nothing of the capture, which is imported for the others only.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from situate.data.graph import Graph
from situate.data.slices import Slices
from situate.data.update_rule import update_rule
from situate.errors import SituateError
from situate.readers import situate_json
from situate.zoo.networks import Network, network

if TYPE_CHECKING:
    from situate.torch_capture import Captures

GRAPHS = Path(__file__).parent / "graphs"


def load(
    name: str,
    optimizer: str | None = None,
    fresh: bool = False,
    signed: bool = False,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    captures: Captures | None = None,
) -> Graph:
    """The graph of a network, such as `resnet50` (a training step) or `resnet50:inference`.

    Args:
        name: one of `names()`, perhaps with `:inference` behind it.
        optimizer: what updates the parameters; by default what docs/zoo.md says.
        fresh: capture anew, whatever comes with situate or lies in the cache.
        signed: with signatures, which graphs that come with situate lack: from the cache, else
            captured.
        slices: of the batch, as `situate.capture` takes them.
        recompute: modules that run their forward pass again, as `situate.capture` takes them.
        captures: what was captured before.

    Raises:
        MissingExtra: the graph does not come with situate and PyTorch, or transformers where the
            network needs it, is not installed.
        SituateError: no such network or optimizer.
    """
    found, training = network(name)
    if optimizer is not None:
        update_rule(optimizer)
        if not training:
            raise SituateError(f"{name}: inference has no update: leave the optimizer out")
    update = optimizer or found.optimizer
    path = packaged(name)
    as_packaged = not (fresh or signed or slices or recompute)
    if as_packaged and path.is_file() and optimizer in (None, found.optimizer):
        graph = situate_json.read(lzma.decompress(path.read_bytes()), name)
        # Files that come with situate do not name the update.
        return replace(graph, optimizer=update if training else "")
    from situate.torch_capture import check_installed
    from situate.torch_capture.cache import cached, keep

    check_installed(*found.packages)
    if fresh or not (captures is None or captures.check):
        return captured(name, found, training, update, slices, recompute, captures)

    def capture() -> Graph:
        graph = captured(name, found, training, update, slices, recompute, captures)
        told = graph.slices, graph.recompute
        if told != (slices, tuple(recompute)):  # by which plans name what was found out
            keep(network_key(name, found, update, *told), graph)
        return graph

    return cached(network_key(name, found, update, slices, recompute), capture)


def packaged(name: str) -> Path:
    """Where the graph of a network lies if it comes with situate."""
    return GRAPHS / f"{name.replace(':', '-')}.json.xz"


def network_key(
    name: str,
    found: Network,
    optimizer: str,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
) -> dict[str, str]:
    """The key of a network's graph in the cache."""
    from situate.torch_capture.cache import recompute_key, slices_key
    from situate.torch_capture.function import versions

    return {
        "zoo": name,
        "optimizer": optimizer,
        "packages": versions("torch", *found.packages),
        "sources": _sources(),
        **slices_key(slices),
        **recompute_key(recompute),
    }


def captured(
    name: str,
    found: Network,
    training: bool,
    optimizer: str,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    captures: Captures | None = None,
) -> Graph:
    """The graph, captured anew."""
    from situate.torch_capture import Captures

    return (captures or Captures()).capture(
        found.build,
        training=training,
        optimizer=optimizer,
        name=name,
        slices=slices,
        recompute=recompute,
    )


def _sources() -> str:
    """SHA-256 over the code of the zoo."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
