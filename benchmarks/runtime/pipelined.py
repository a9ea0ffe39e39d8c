"""One of the two processes of a pipelined training step by torch.distributed.pipelining, over gloo:
half of a sequential network, the 1F1B schedule, one thread.

    python -m benchmarks.runtime.pipelined NETWORK MICROBATCHES RANK FILE
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch import nn

from benchmarks.runtime.runtime_cases import Case
from benchmarks.runtime.served import serve
from situate.runtime.model_state import optimizers

STAGES = 2
PATIENCE = timedelta(seconds=120)


def main(network: str, microbatches: int, rank: int, file: str) -> None:
    """Serve the steps of one stage.

    Args:
        file: does not exist yet; through it the processes find each other.
    """
    torch.set_num_threads(1)
    serve(lambda: (None, _step(Case(network), microbatches, rank, file)))


def _step(case: Case, microbatches: int, rank: int, file: str) -> Callable[[], object]:
    from torch import distributed
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    distributed.init_process_group(
        "gloo", f"file://{file}", timeout=PATIENCE, world_size=STAGES, rank=rank
    )
    model, (x, wanted), _ = case.built
    assert isinstance(model, nn.Sequential)
    half = len(model) // STAGES
    stage = model[half * rank : half * (rank + 1)]
    optimizer = optimizers.default_optimizer(case.kind, list(stage.parameters()))
    schedule: Any = Schedule1F1B(
        PipelineStage(stage, rank, STAGES, torch.device("cpu")),
        microbatches,
        nn.functional.mse_loss,
    )

    def step() -> None:
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=wanted)
        optimizer.step()

    return step


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
