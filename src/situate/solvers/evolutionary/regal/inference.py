"""Inference with a trained policy."""

from __future__ import annotations

from pathlib import Path

import torch

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.policies.arithmetic import arithmetic
from situate.solvers.evolutionary.regal import weights
from situate.solvers.evolutionary.regal.batches import batch_of
from situate.solvers.evolutionary.regal.encoding import Encoding


class Proposer:
    """A trained policy from a file of weights, checked against a problem.

    Raises:
        SituateError: see `weights.read` and `weights.check_for`.
    """

    def __init__(self, path: Path, problem: Problem) -> None:
        self._policy, about = weights.read(path)
        weights.check_for(path, about, problem.objective, problem.d)
        self.settings = about.settings

    def actions(self, encoded: Encoding, seed: int) -> Ints:
        """(n, c) the category of each choice at each op, drawn from the policy."""
        with arithmetic():
            generator = torch.Generator().manual_seed(seed)
            [sample] = self._policy.sample(batch_of([encoded]), 1, generator)
        actions: Ints = sample.numpy()
        return actions
