"""ONNX Runtime: a layer annotation a node, and the setting that gives each to a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.errors import MissingExtra, PlanError, SituateError
from situate.files.atomic import write_bytes
from situate.files.contents import contents
from situate.files.strict_json import json_bytes
from situate.readers.onnx import tensors
from situate.readers.onnx.names import bodies_of
from situate.schedule.schedule import Schedule

ANNOTATION = "layer_ann"
"""Key of a node's annotation among its metadata."""

SETTING = "session.layer_assignment_settings"
"""The session option that maps annotations to devices."""

DESIGNATORS = ("cpu", "gpu", "npu", "fpga")
"""Kinds of devices that ONNX Runtime has a word for; any other is an `accelerator`."""


class SeveralOfAKind(PlanError):
    """A plan for two devices of one kind; another plan may do with one of each."""


def write(
    problem: Problem, schedule: Schedule, path: str | Path, model: str | Path | None = None
) -> None:
    """Write the model with annotated nodes if `path` ends in `.onnx`, else JSON.

    The copy has the setting in its metadata, and its external weights stay in their files.

    Args:
        model: the ONNX file of the graph.

    Raises:
        PlanError: the graph is not from ONNX.
        SeveralOfAKind: the plan uses two devices of one kind.
        SituateError: `model` is no ONNX file, its weights could not be found beside the copy, or
            `path` cannot be written.
        MissingExtra: onnx is not installed.
    """
    names, setting = layer_annotations(problem, schedule)
    if Path(path).suffix.lower() == ".onnx":
        data = _annotated(problem, names, setting, Path(path), model)
    else:
        data = json_bytes({SETTING: setting, ANNOTATION: names})
    write_bytes(path, data)


def layer_annotations(problem: Problem, schedule: Schedule) -> tuple[dict[str, str], str]:
    """The annotation of every node by its op's name, and the setting for all of them.

    Raises:
        PlanError: the graph is none of ONNX.
        SeveralOfAKind: the plan uses two devices of one kind.
    """
    nodes = [j for j, op in enumerate(problem.graph.ops) if op.kind.startswith("onnx.")]
    if not nodes:
        raise PlanError(
            f"graph {problem.graph.name!r} was not read from ONNX, and its nodes are what ONNX "
            "Runtime places: plan the .onnx file"
        )
    ops, placement = problem.graph.ops, schedule.placement.tolist()
    devices = _designators(problem, {placement[j] for j in nodes})
    names = {ops[j].name: f"situate-{devices[placement[j]]}" for j in nodes}
    return names, "; ".join(f"{device}(=situate-{device})" for device in devices.values())


def _designators(problem: Problem, devices: set[int]) -> dict[int, str]:
    """ONNX Runtime's names of the devices that a plan uses: `cpu`, `gpu`, `gpu:1`."""
    cluster = problem.cluster
    counts: dict[str, int] = {}
    for device in sorted(devices):
        kind = cluster.devices[device].kind
        word = kind if kind in DESIGNATORS else "accelerator"
        if counts.setdefault(word, device) != device:
            names = f"{cluster.names[counts[word]]!r} and {cluster.names[device]!r}"
            raise SeveralOfAKind(
                f"the plan uses {names}, and a session of ONNX Runtime has one {word} device"
            )
    return {device: _numbered(word, device, cluster) for word, device in counts.items()}


def _numbered(word: str, device: int, cluster: Cluster) -> str:
    """`gpu:1` for the second GPU of a cluster."""
    number = sum(other.kind == "gpu" for other in cluster.devices[:device])
    return f"gpu:{number}" if word == "gpu" and number else word


def _annotated(
    problem: Problem, names: Mapping[str, str], setting: str, path: Path, source: str | Path | None
) -> bytes:
    """The model of `source` with an annotation at every node that the plan places."""
    model = _load(source)
    if _is_external(model) and path.resolve().parent != Path(str(source)).resolve().parent:
        raise SituateError(
            f"cannot write {str(path)!r}: the model's weights lie in files beside {str(source)!r}: "
            "write into its folder"
        )
    maker = {
        tensor.name: problem.graph.ops[tensor.producer].name for tensor in problem.graph.tensors
    }
    whole = {op.name: op.kind for op in problem.graph.ops}
    for node in _nodes(model.graph, maker, whole):
        op = _op(node, maker)
        if op in names:
            _set(node.metadata_props, ANNOTATION, names[op])
    _set(model.metadata_props, SETTING, setting)
    return bytes(model.SerializeToString())


def _op(node: Any, maker: Mapping[str, str]) -> str:
    """The name of a node's op: the op that produces its outputs, else its own."""
    makers = (maker[value] for value in node.output if value in maker)
    return next(makers, node.name or next(iter(node.output), ""))


def _nodes(graph: Any, maker: Mapping[str, str], kinds: Mapping[str, str]) -> Iterator[Any]:
    """All nodes that are ops, and every `If` that the plan replaces by one of its branches."""
    for node in graph.node:
        yield node
        # Another kind than the node's: the graph has the ops of a branch in place of its `If`.
        if kinds.get(_op(node, maker)) != f"onnx.{node.op_type}":
            for body in bodies_of(node):
                yield from _nodes(body, maker, kinds)


def _load(source: str | Path | None) -> Any:
    """The model as the graph's reader sees it, without weights that lie elsewhere."""
    try:
        import onnx
        import onnx.inliner
        from google.protobuf.message import DecodeError
    except ImportError:
        raise MissingExtra("onnx", "onnx") from None
    if source is None or not Path(source).is_file():
        raise SituateError(f"{source}: is no ONNX file, and only one can be annotated: write JSON")
    try:
        model = onnx.load_model_from_string(contents(Path(source)))
    except DecodeError:
        raise SituateError(f"{source}: is no ONNX file: write the annotations as JSON") from None
    return onnx.inliner.inline_local_functions(model) if model.functions else model


def _is_external(model: Any) -> bool:
    return any(tensor.external_data for tensor in tensors(model.graph, model.functions))


def _set(properties: Any, key: str, value: str) -> None:
    """Give one entry of a list of keys and values its value."""
    entry = next((entry for entry in properties if entry.key == key), None)
    entry = properties.add(key=key) if entry is None else entry
    entry.value = value
