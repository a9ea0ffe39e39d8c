"""CUDA devices; without a GPU only the paths before one are tested."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.data.cluster import Device  # noqa: E402
from situate.profiling import cuda  # noqa: E402
from situate.runtime.hardware import RealDevice  # noqa: E402
from situate.runtime.subject import Subject  # noqa: E402

CPUS = [RealDevice("cpu:0", "cpu", 1), RealDevice("cpu:1", "cpu", 1)]
GPU = RealDevice("gpu0", "cuda:0", 1)

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


# Links and copies on the CPU.
def test_pairs_of_cpus_are_left_to_their_processes() -> None:
    assert list(cuda.measure_links(CPUS)) == []


def test_a_copy_goes_through_memory_of_the_host() -> None:
    assert cuda._copy_seconds("cpu", "cpu", 1 << 16) > 0


# On a real GPU.
@needs_gpu
def test_every_op_of_a_step_is_timed(subject: Subject) -> None:
    costs = cuda.measure_device(subject.program, Device("gpu0", flops={"float32": 1e13}), GPU)
    signatures = {op.signature for op in subject.program.graph.ops if op.signature}
    assert costs.seconds.keys() == signatures
    assert costs.launch > 0


@needs_gpu
def test_copies_are_links_in_both_directions() -> None:
    links = list(cuda.measure_links([CPUS[0], GPU]))
    assert [(link.source, link.target) for link in links] == [("cpu:0", "gpu0"), ("gpu0", "cpu:0")]
    assert all(link.bandwidth > 1e8 for link in links)
