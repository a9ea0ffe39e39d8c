"""Devices of ops, and copies between devices."""

from __future__ import annotations

import pytest

from situate.language.activations.scheduling import COPIES, OFFLOAD_BATCH, Scheduler
from situate.language.activations.tensors import Graph, Tensor, entry, stored

SIZE = 64


def product(x: Tensor, device: int, batch: int = 4) -> Tensor:
    weight = stored((SIZE, SIZE), 4 * SIZE * SIZE, device, weight=True)
    return Tensor((SIZE, batch), (weight, x), batch=batch)


def chain(*devices: int, batch: int = 4) -> tuple[Graph, list[Tensor]]:
    """Products one after the other, with an op without weights between them."""
    graph, x, ops = Graph(), entry((SIZE, batch)), []
    for device in devices:
        x = product(x, device, batch)
        ops.append(x)
        x = Tensor(x.shape, (x,))
        ops.append(x)
    graph.expand(x)
    return graph, ops


# Two GPUs and the host, which has number 2.
def test_an_op_runs_where_its_weight_lies_and_others_follow() -> None:
    graph, ops = chain(0, 1, 1)
    Scheduler(2, False, False).run(graph)
    assert [op.device for op in ops] == [0, 0, 1, 1, 1, 1]


def test_ops_without_weights_prefer_gpus() -> None:
    graph, ops = chain(2, 0, 2)
    Scheduler(2, False, False).run(graph)
    assert [op.device for op in ops] == [2, 0, 0, 0, 2, 2]


@pytest.mark.parametrize(("batch", "device"), [(OFFLOAD_BATCH, 0), (OFFLOAD_BATCH - 1, 2)])
def test_the_first_gpu_computes_with_the_hosts_weights_in_long_batches(
    batch: int, device: int
) -> None:
    graph, ops = chain(2, batch=batch)
    Scheduler(2, True, False).run(graph)
    assert ops[0].device == device


# Copies of what a split reads from elsewhere.
def test_a_tensor_is_copied_once_to_each_device_that_reads_it() -> None:
    graph, ops = chain(0, 1)
    last = product(ops[1], 1)
    graph.expand(last)
    _, nodes = Scheduler(2, False, False).run(graph)
    copies = [node for node in nodes if not node.sources and node.device == 1]
    assert len(copies) == 1
    assert last.sources[1] is copies[0]
    assert sum(node.dependency for node in nodes) == 2


def test_pipeline_parallelism_copies_inputs_several_times() -> None:
    graph, _ = chain(0, 1)
    leaves, _ = Scheduler(2, False, True).run(graph)
    for device in (0, 1, 2):
        copies = [leaf for leaf in leaves if leaf.device == device and not leaf.stored]
        assert len({id(copy) for copy in copies}) == COPIES
        assert all(copy.permanent for copy in copies)
