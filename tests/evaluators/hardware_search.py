"""A search on this machine that can be killed: python -m tests.evaluators.hardware_search STUDY."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from situate.data.cluster import Cluster, Device, Link
from situate.data.problem import Problem
from situate.evaluators.hardware.machine import RealMachine
from situate.evaluators.measurements import Measurements
from situate.results.result import Result
from situate.runtime.subject import Subject, find_subject
from situate.solvers import solve
from situate.solvers.learned.learner import Learning

SAMPLES = 18
MODEL = "tests.evaluators.hardware_search:build:inference"
CPUS = Cluster(
    "two",
    tuple(
        Device(f"cpu:{i}", kind="cpu", flops={"float32": 1e10}, bandwidth=1e10, threads=1)
        for i in range(2)
    ),
    (Link("*", "*", 1e9, 1e-5),),
)


def build() -> tuple[nn.Module, dict[str, Tensor], Callable[..., Tensor]]:
    """Model, inputs by name, loss."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    return model, {"input": torch.ones(2, 4)}, lambda model, input: model(input).mean()


def machine(subject: Subject, limit: float = 60.0, fresh: bool | None = None) -> RealMachine:
    """Two devices of this machine."""
    return RealMachine(Problem(subject.program.graph, CPUS), subject, limit, fresh)


def search(study: Path, arguments: Callable[[int, Measurements], None]) -> Result:
    """Learn from the measurements."""
    subject = find_subject(MODEL)
    with machine(subject) as measuring:
        learning = Learning(study=study, evaluator=measuring, on_measured=arguments)
        problem = Problem(subject.program.graph, CPUS)
        return solve(problem, "post", evaluations=SAMPLES, learning=learning)


if __name__ == "__main__":
    search(Path(sys.argv[1]), lambda first, batch: print(first + len(batch), flush=True))
