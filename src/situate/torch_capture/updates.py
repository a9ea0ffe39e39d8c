"""The updates of a captured step: one op a parameter, in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from situate.data.graph import Op
from situate.data.update_rule import OPTIMIZERS
from situate.errors import SituateError
from situate.torch_capture import cost, names, signature
from situate.torch_capture.flow import Storage
from situate.torch_capture.step import SUM, UPDATE, Draft, Step

if TYPE_CHECKING:
    from torch import fx


def buffer_updates(step: Step) -> Iterator[Draft]:
    """Buffers that several ops touch, and parameters that are not trained, get their new value at
    the end, in place.

    Raises:
        SituateError: the forward pass changes a parameter that is trained.
    """
    for node in step.number:
        path = names.held(node)
        if path in step.flow.gradients and path in step.flow.mutations:
            raise SituateError(
                f"the forward pass changes parameter {path!r}, which is trained: change it after "
                "the step, or freeze it"
            )
        if path in step.flow.mutations:
            new, size = step.flow.mutations[path], step.nbytes((node, 0))
            op = _update_op(step, node, "copy", 0, 2 * size)
            yield Draft(op, node, _last(step, new, (node, 0)), (new,), overwrites=(node, 0))


def updates(step: Step) -> Iterator[Draft]:
    """One op a parameter, in place; gradients of tied names are added first."""
    for node in step.number:
        path = names.held(node)
        if step.flow.gradients.get(path) and (node, 0) in step.flow.used:
            yield from _update(step, node, path, step.flow.gradients[path])


def _update(
    step: Step, node: fx.Node, path: str, gradients: tuple[Storage, ...]
) -> Iterator[Draft]:
    parameter, size = (node, 0), step.nbytes((node, 0))
    place = _last(step, parameter, *gradients)
    distinct = tuple(dict.fromkeys(gradients))
    if len(gradients) > 1:
        total = (node, 1)
        reads, writes = distinct, {total: size}
        op = _sum_op(path, size, len(gradients), node)
        yield Draft(op, node, (place[0], SUM), reads, writes)
        distinct = (total,)
    states, arithmetic = OPTIMIZERS[step.optimizer]
    count = int(node.meta["val"].numel())
    op = _update_op(step, node, step.optimizer, arithmetic * count, (3 + 2 * states) * size)
    yield Draft(op, node, place, distinct, overwrites=parameter)


def _last(step: Step, *storages: Storage) -> tuple[int, int]:
    nodes = [node for node, _ in storages]
    readers = (reader for storage in storages for reader in step.flow.readers.get(storage, ()))
    return max(step.number[node] for node in (*nodes, *readers)), UPDATE


def _update_op(step: Step, node: fx.Node, how: str, flops: int, traffic: int) -> Op:
    path = names.held(node)
    name = names.uncompiled(step.trace.parameter(path))
    return Op(
        names.in_part(node, f"{name}/{how}"),
        f"update.{how}",
        flops=flops,
        traffic=traffic,
        dtype=cost.dtype([], node.meta["val"]),
        group=names.uncompiled(path),
        module=name.rpartition(".")[0],
        phase="update",
        signature=signature.call(f"update.{how}", (node.meta["val"],)),
        replica=node.meta.get(names.REPLICA),
    )


def _sum_op(path: str, size: int, count: int, node: fx.Node) -> Op:
    name = names.uncompiled(path)
    return Op(
        f"{name}/add",
        "aten.add",
        traffic=size * (count + 1),
        dtype=cost.dtype([], node.meta["val"]),
        module=name.rpartition(".")[0],
        phase="backward",
        signature=signature.call("aten.add", (node.meta["val"],) * count),
    )
