"""Graphs of the zoo: from the package, from the cache on disk, or captured.

A packaged graph loads without PyTorch and without `situate.torch_capture`.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from situate.data.capture_options import CaptureOptions
from situate.data.cuts import Cuts
from situate.data.graph import Graph
from situate.data.slices import Slices
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
    cuts: Cuts | None = None,
    captures: Captures | None = None,
) -> Graph:
    """The graph of a network, such as `resnet50` (a training step) or `resnet50:inference`.

    Args:
        name: one of `names()`, with or without `:inference`.
        optimizer: the update of the parameters; None for the network's own (docs/zoo.md).
        fresh: capture the network even if its graph is in the package or the cache.
        signed: include signatures of ops. Packaged graphs lack them, so the graph comes from the
            cache or a capture.
        slices: how to cut the batch, as `situate.capture` takes them.
        recompute: modules that run their forward pass again, as `situate.capture` takes them.
        cuts: of ops into parts, as `situate.capture` takes them.
        captures: earlier captures of the same model, which is then built only once.

    Raises:
        MissingExtra: the graph is not packaged, and PyTorch (or transformers, for networks that
            need it) is not installed.
        SituateError: the network or the optimizer does not exist.
    """
    options = CaptureOptions(optimizer, None, fresh, signed, slices, recompute, cuts)
    return load_network(name, options, captures)


def load_network(name: str, options: CaptureOptions, captures: Captures | None = None) -> Graph:
    """The graph of a network; arguments and errors are those of `load`."""
    entry, training = network(name)
    if options.optimizer is not None and not training:
        raise SituateError(f"{name}: inference has no update: leave the optimizer out")
    update = options.optimizer or entry.optimizer
    if (graph := _packaged_graph(name, options)) is not None:
        return graph
    from situate.torch_capture import check_installed
    from situate.torch_capture.cache import cached, keep

    check_installed(*entry.packages)
    if not options.from_cache:
        return captured(name, options, captures)

    def capture() -> Graph:
        graph = captured(name, options, captures)
        # Plans name the slices and modules that the capture resolved, so both keys find the graph.
        resolved = graph.slices, graph.recompute
        if resolved != (options.slices, tuple(options.recompute)):
            keep(network_key(name, entry, update, *resolved, options.cuts), graph)
        return graph

    key = network_key(name, entry, update, options.slices, options.recompute, options.cuts)
    return cached(key, capture)


def _packaged_graph(name: str, options: CaptureOptions) -> Graph | None:
    """The graph in the package, if it is captured with these options."""
    entry, training = network(name)
    path = packaged(name)
    if options.fresh or options.signed or options.slices or options.recompute or options.cuts:
        return None
    if options.optimizer not in (None, entry.optimizer) or not path.is_file():
        return None
    graph = situate_json.read(lzma.decompress(path.read_bytes()), name)
    # Packaged files do not name the update.
    return replace(graph, optimizer=entry.optimizer if training else "")


def packaged(name: str) -> Path:
    """The path of a network's graph in the package, whether it is there or not."""
    return GRAPHS / f"{name.replace(':', '-')}.json.xz"


def network_key(
    name: str,
    entry: Network,
    optimizer: str,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    cuts: Cuts | None = None,
) -> dict[str, str]:
    """The key of a network's graph in the cache."""
    from situate.torch_capture.cache import cuts_key, recompute_key, slices_key
    from situate.torch_capture.function import versions

    return {
        "zoo": name,
        "optimizer": optimizer,
        "packages": versions("torch", *entry.packages),
        "sources": _sources(),
        **slices_key(slices),
        **recompute_key(recompute),
        **cuts_key(cuts),
    }


def captured(name: str, options: CaptureOptions, captures: Captures | None = None) -> Graph:
    """The graph of a network, captured anew."""
    from situate.torch_capture import Captures

    entry, training = network(name)
    check_slices = options.slices is None or options.check_slices
    return (captures or Captures(check_slices)).capture(
        entry.build,
        training=training,
        optimizer=options.optimizer or entry.optimizer,
        name=name,
        slices=options.slices,
        recompute=options.recompute,
        cuts=options.cuts,
    )


def _sources() -> str:
    """SHA-256 over the code of the zoo."""
    # Any change to a network, or to a layer that it uses, must miss the cache.
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
