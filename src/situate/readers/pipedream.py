"""PipeDream's profiles (Narayanan et al., SOSP 2019). See docs/formats/pipedream.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from situate.data.graph import Graph, Op, Tensor
from situate.errors import ReadError, nearest
from situate.files.contents import lines
from situate.files.strict_json import Keys
from situate.readers.quantity import amount, size

FIGURES = {"forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"}


@dataclass
class _Layer:
    node: str
    description: str
    forward: float
    """Seconds, as `backward`."""
    backward: float
    activation: int
    """Bytes, as `parameters`."""
    parameters: int
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The word before the arguments, such as `Conv2d`."""
        return re.split(r"[\s(]", self.description, maxsplit=1)[0] or "layer"

    @property
    def name(self) -> str:
        return f"{self.node}/{self.kind}"

    @property
    def learns(self) -> bool:
        """True if the layer has a backward pass: an input has no gradient."""
        return bool(self.before or self.parameters or self.backward)


def recognises(data: bytes, keys: Keys) -> bool:
    """True if the first line is a layer with its times."""
    return bool(re.match(rb"\s*\S+ -- .* -- [^\n]*forward_compute_time=", data[:4096]))


def read(data: bytes, name: str) -> Graph:
    """The graph of a training step: an op forward and an op backward for every layer.

    Milliseconds become seconds. A layer is a group; its parameters are persistent on its forward
    op, its activation goes to the layers that follow and to its own backward op, and the gradient
    of an activation comes back from each of them.

    Raises:
        ReadError: a line that is neither a layer nor an edge, an edge to an unknown layer.
        GraphError: the graph breaks its own rules.
    """
    layers = _layers(lines(data))
    ops = [op for layer in layers.values() for op in _ops(layer, layers)]
    index = {op.name: j for j, op in enumerate(ops)}
    tensors = [t for layer in layers.values() for t in _tensors(layer, layers, index)]
    return Graph(name=name, ops=tuple(ops), tensors=tuple(tensors), source="pipedream")


def _layers(content: Iterable[str]) -> dict[str, _Layer]:
    layers: dict[str, _Layer] = {}
    edges: dict[tuple[str, str], int] = {}
    for number, line in enumerate(content, start=1):
        columns = line.strip().split(" -- ")
        if len(columns) == 2:
            edges.setdefault((columns[0], columns[1]), number)
        elif len(columns) > 2:
            layer = _layer(columns, f"line {number}")
            if layers.setdefault(layer.node, layer) is not layer:
                raise ReadError(f"line {number}: two layers are called {layer.node!r}")
        elif columns[0]:
            raise ReadError(f"line {number}: is neither a layer nor an edge: {line[:60]!r}")
    # Last, because an edge may stand before its layers.
    for (before, after), number in edges.items():
        _connect(layers, before, after, f"line {number}")
    return layers


def _layer(columns: list[str], where: str) -> _Layer:
    """A layer from its columns: node, description and figures.

    The description may contain the separator. PipeDream's optimiser appends a stage, which is its
    plan and no part of the profile.
    """
    if columns[-1].startswith("stage_id="):
        columns = columns[:-1]
    # A figure is a number or, of a layer with several outputs, a list in brackets.
    figures = dict(re.findall(r"\b(\w+)=(\[[^\]]*\]|[^,]*)", columns[-1]))
    if missing := FIGURES - set(figures):
        raise ReadError(f"{where}: has no {', '.join(sorted(missing))}")
    activations = figures["activation_size"].strip("[]").split(";")
    return _Layer(
        columns[0],
        " -- ".join(columns[1:-1]),
        _seconds(figures, "forward_compute_time", where),
        _seconds(figures, "backward_compute_time", where),
        sum(size(part.strip(), f"{where}: activation_size") for part in activations),
        size(figures["parameter_size"], f"{where}: parameter_size"),
    )


def _seconds(figures: dict[str, str], key: str, where: str) -> float:
    return amount(figures[key], f"{where}: {key}") / 1000


def _connect(layers: dict[str, _Layer], before: str, after: str, where: str) -> None:
    for node in (before, after):
        if node not in layers:
            raise ReadError(f"{where}: unknown layer {node!r}{nearest(node, layers)}")
    layers[before].after.append(after)
    layers[after].before.append(before)


def _ops(layer: _Layer, layers: dict[str, _Layer]) -> list[Op]:
    def op(name: str, seconds: float, phase: str, parameters: int) -> Op:
        return Op(
            name,
            kind=layer.kind,
            seconds={"*": seconds},
            persistent=parameters,
            group=_group(layer, layers),
            module=layer.description,
            phase=phase,
        )

    ops = [op(layer.name, layer.forward, "forward", layer.parameters)]
    if layer.learns:
        ops.append(op(f"{layer.name}/backward", layer.backward, "backward", 0))
    return ops


def _group(layer: _Layer, layers: dict[str, _Layer]) -> str:
    """The group of a layer; one that only picks another layer's result shares its group."""
    picks = set[str]()
    while layer.kind == "__getitem__" and layer.before and layer.node not in picks:
        picks.add(layer.node)
        layer = layers[layer.before[0]]
    return layer.node


def _tensors(layer: _Layer, layers: dict[str, _Layer], index: dict[str, int]) -> list[Tensor]:
    forward = [layers[node].name for node in layer.after]
    own = [f"{layer.name}/backward"] if layer.learns else []
    activation = Tensor(
        layer.name, index[layer.name], layer.activation, tuple(index[n] for n in forward + own)
    )
    gradients = [
        Tensor(
            f"{layer.name}/gradient/{before}",
            index[f"{layer.name}/backward"],
            layers[before].activation,
            (index[f"{layers[before].name}/backward"],),
        )
        for before in layer.before
        if layers[before].learns
    ]
    return [activation, *gradients]
