"""vLLM's settings."""

from __future__ import annotations

from pathlib import Path

from situate.writers.vllm import write
from tests.writers.layered import layered_plan


def test_the_partition_and_the_size_are_those_of_the_stages(tmp_path: Path):
    write(*layered_plan([0, 0, 0, 0, 0, 1, 1, 1, 1]), tmp_path / "run.sh")
    assert (tmp_path / "run.sh").read_text() == (
        "#!/bin/sh\n# net on c: gpu0, gpu1\nexport VLLM_PP_LAYER_PARTITION=4,2\n"
        'exec "$@" --pipeline-parallel-size 2\n'
    )


def test_devices_in_another_order_are_named(tmp_path: Path):
    write(*layered_plan([2, 2, 2, 2, 2, 1, 1, 1, 1]), tmp_path / "run.sh")
    assert "export CUDA_VISIBLE_DEVICES=2,1\n" in (tmp_path / "run.sh").read_text()
