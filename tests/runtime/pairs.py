"""A model that is trained twice: by placed steps, and as PyTorch does it."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch

from situate.runtime.model_state.optimizers import kind_of
from situate.runtime.step import PlacedStep, StartDevices
from tests.runtime.models import MODELS
from tests.runtime.steps import (
    STEPS,
    MakeOptimizer,
    assert_same,
    optimizer_snapshot,
    program,
    state,
    step_of,
    train,
)


@dataclass
class Pair:
    """A model that is trained by placed steps, and a copy that is trained without a placement."""

    name: str
    make: MakeOptimizer

    def __post_init__(self) -> None:
        self.model, self.inputs, self.loss = MODELS[self.name]()
        self.copy = copy.deepcopy(self.model)
        self.optimizer = self.make(self.model.parameters())
        self.copied = self.make(self.copy.parameters())
        self.program = program(self.name, kind_of(self.optimizer))
        self.steps = 0

    def placed(self, devices: int, start: StartDevices | None, seed: int = 0) -> PlacedStep:
        """The step, placed at random."""
        return step_of(self.program, self.model, self.optimizer, devices, start, seed=seed)

    def both(self, step: PlacedStep, steps: int = STEPS) -> None:
        """Run both; the losses are equal."""
        for _ in range(steps):
            self.steps += 1
            expected = train(self.copy, self.inputs, self.loss, self.copied, self.steps)
            assert torch.equal(step(*self.inputs), expected)

    def assert_same(self) -> None:
        """Model and copy are equal, and so are the optimisers' states."""
        assert_same(state(self.model), state(self.copy))
        assert_same(
            optimizer_snapshot(self.model, self.optimizer),
            optimizer_snapshot(self.copy, self.copied),
        )
