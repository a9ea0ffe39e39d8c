"""A model whose modules run one after the other, and a rank that runs its stages in PyTorch.

Ranks are processes that import this file, so it knows nothing but PyTorch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

BATCH = 8


class Block(nn.Module):
    """A residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.down(self.up(x).relu())
        return out


class Chain(nn.Module):
    """An embedding, four blocks and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(4, 8), nn.Linear(8, 3)
        self.layers = nn.ModuleList(Block() for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        out: Tensor = self.head(x)
        return out


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross entropy."""
    return cross_entropy(model(x), y)


def build() -> Any:
    """The model, a batch and its loss; the same numbers each time."""
    torch.manual_seed(0)
    model = Chain().double()
    inputs = torch.randn(BATCH, 4, dtype=torch.float64), torch.randint(3, (BATCH,))
    return model, inputs, loss


def run_rank(rank: int, folder: str, files: Sequence[str]) -> None:
    """Run the stages of one of two ranks by each of these files; leaves losses and gradients."""
    import torch.distributed as dist

    torch.set_num_threads(1)
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    for file in files:
        torch.save(_step(rank, Path(folder, file)), f"{folder}/{file}.{rank}")
    dist.destroy_process_group()


def _step(rank: int, file: Path) -> tuple[list[Tensor], dict[str, Tensor | None]]:
    """One step by a file of stages: losses, if the last stage is here, and gradients by name."""
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    plan, (model, (x, y), _) = json.loads(file.read_text()), build()
    names, device = plan["stages"], torch.device("cpu")
    mine = [stage for stage, at in enumerate(plan["ranks"]) if at == rank]
    stages = []
    for number in mine:
        module = nn.Sequential(*(model.get_submodule(path) for path in names[number]))
        stages.append(PipelineStage(module, number, len(names), device))
    schedule = _PipelineScheduleRuntime(
        stages, plan["microbatches"], loss_fn=cross_entropy, scale_grads=plan["scale_grads"]
    )
    schedule._load_csv(str(file.parent / plan["schedule"]))
    losses: list[Tensor] = []
    target = y if len(names) - 1 in mine else None
    schedule.step(*((x,) if 0 in mine else ()), target=target, losses=losses)
    return losses, {name: value.grad for name, value in model.named_parameters()}
