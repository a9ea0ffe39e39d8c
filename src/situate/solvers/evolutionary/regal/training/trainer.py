"""REINFORCE with a baseline (REGAL, 4.1): BRKGA runs in the core while the networks learn."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from situate.data.arrays import Floats
from situate.policies.gradient_ascent import Ascent
from situate.policies.graph_network import GraphBatch
from situate.policies.proposal_policy import Baseline, ProposalPolicy, log_prob
from situate.solvers.evolutionary.regal.proposals import derived
from situate.solvers.evolutionary.regal.settings import RegalSettings
from situate.solvers.evolutionary.regal.training.instances import Instances, Trials
from situate.solvers.evolutionary.regal.weights import batch_of, features_of

AS_PLAIN = -1.0
"""The reward of proposals that equal plain BRKGA."""

VALIDATION = 100
"""Largest number of validation graphs whose reward selects the parameters."""

State = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Point:
    """A point of the learning curve.

    Attributes:
        steps: number so far.
        reward: mean over the steps since the point before.
        validation: mean reward of the validation graphs; NaN without any.
    """

    steps: int
    reward: float
    validation: float


@dataclass(frozen=True, eq=False)
class _Outcome:
    """The result of a step.

    Attributes:
        batch: graphs of the step.
        actions: (samples, n, c) proposals for all their ops.
        rewards: (samples, graphs) of the proposals.
    """

    batch: GraphBatch
    actions: Tensor
    rewards: Floats


class Trainer:
    """Trains a policy and its baseline.

    While BRKGA runs with the proposals of a step, the networks learn from the step before. So
    actions come from parameters that are one step older.

    Args:
        policy: to train.
        train, valid: graphs for training and for validation; None for no validation.
        settings: see `RegalSettings`.
        seed: of all draws.
        trials: runs BRKGA.
    """

    def __init__(
        self,
        policy: ProposalPolicy,
        train: Instances,
        valid: Instances | None,
        settings: RegalSettings,
        seed: int,
        trials: Trials,
    ) -> None:
        self.policy, self._train, self._valid = policy, train, valid
        self._settings, self._seed = settings, seed
        machine = train.machine
        features = features_of(machine.objective, len(machine.cluster.devices), settings)
        self._baseline = Baseline(features, settings.shape, generator(seed, 1), AS_PLAIN)
        networks = nn.ModuleList([policy, self._baseline])
        self._ascent = Ascent(networks, "adam", settings.learning_rate, settings.clip)
        self._trials = trials
        self.step, self.curve = 0, list[Point]()
        self._best = flat(policy)

    def run(self, steps: int, every: int, on_point: Callable[[Point], None]) -> None:
        """Train up to so many steps, and call `on_point` every `every` steps."""
        while self.step < steps:
            rewards = self._span(min(self.step + every, steps))
            point = Point(self.step, float(np.mean(rewards)), self._validated())
            # NaN, for no validation, compares as false: then the last parameters are the best.
            if not point.validation < max((p.validation for p in self.curve), default=-np.inf):
                self._best = flat(self.policy)
            self.curve.append(point)
            on_point(point)

    def _span(self, end: int) -> list[Floats]:
        """Train up to step `end`; the rewards of these steps."""
        outcome_of, rewards = self._begin(self.step), list[Floats]()
        for step in range(self.step, end):
            outcome = outcome_of()
            if step + 1 < end:
                outcome_of = self._begin(step + 1)
            self._learn(outcome)
            rewards.append(outcome.rewards)
        self.step = end
        return rewards

    def _begin(self, step: int) -> Callable[[], _Outcome]:
        """Start BRKGA with the policy's current proposals; the returned function waits for it."""
        return self._run(self._train, self._numbers(step), 2, step)

    def _numbers(self, step: int) -> list[int]:
        """Numbers of a step's graphs; each epoch has a random order of all graphs."""
        size, total = self._settings.batch, len(self._train)
        # A batch may span two epochs, each with an order of its own.
        rounds, places = np.divmod(np.arange(step * size, (step + 1) * size), total)
        orders = {i: np.random.default_rng((self._seed, i)).permutation(total) for i in set(rounds)}
        return [int(orders[i][place]) for i, place in zip(rounds, places, strict=True)]

    def _run(
        self, among: Instances, numbers: Sequence[int], *purpose: int
    ) -> Callable[[], _Outcome]:
        encoded = self._trials.encoded(among, numbers)
        batch = batch_of(encoded)
        actions = self.policy.sample(batch, self._settings.samples, generator(self._seed, *purpose))
        seed = derived(self._seed, *purpose, 0)
        ends = np.cumsum([len(encoding.nodes) for encoding in encoded])
        # (samples, all ops, c) -> by graph (samples, n, c).
        of_graphs = np.split(actions.numpy(), ends[:-1], axis=1)
        rewards = self._trials.rewards(among, numbers, of_graphs, seed)
        return lambda: _Outcome(batch, actions, rewards())

    def _learn(self, outcome: _Outcome) -> None:
        """One step of gradient ascent."""
        rewards = torch.tensor(outcome.rewards, dtype=torch.float32)
        advantage, error = self._advantage(rewards, outcome.batch)
        log_probs = self.policy.log_probs(outcome.batch)
        log_probability = log_prob(log_probs, outcome.actions, outcome.batch)
        self._ascent.step(
            (advantage * log_probability).mean() - self._settings.baseline_weight * error
        )

    def _advantage(self, rewards: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """(samples, graphs) advantages, and the baseline's mean squared error."""
        samples = len(rewards)
        if samples > 1:
            # Each reward less the mean of the others.
            return (rewards - rewards.mean(dim=0)) * samples / (samples - 1), torch.zeros(())
        expected = self._baseline(batch)
        return rewards - expected.detach(), (rewards - expected).square().mean()

    def _validated(self) -> float:
        """The mean reward of the validation graphs; NaN without any."""
        if self._valid is None:
            return float("nan")
        numbers = range(min(VALIDATION, len(self._valid)))
        size = self._settings.batch
        parts = [numbers[at : at + size] for at in range(0, len(numbers), size)]
        running = [self._run(self._valid, part, 3, part[0]) for part in parts]
        return float(
            np.mean(np.concatenate([outcome_of().rewards for outcome_of in running], axis=1))
        )

    def state(self) -> State:
        """The state to resume from."""
        return {
            **self._ascent.state(),
            "step": np.array(self.step),
            "best": self._best,
            "curve": np.array([(p.steps, p.reward, p.validation) for p in self.curve]).reshape(
                -1, 3
            ),
            "plain": self._train.values,
            **({} if self._valid is None else {"plain_valid": self._valid.values}),
        }

    def restore(self, state: State) -> None:
        """Load `state`."""
        self._ascent.restore(state)
        self.step = int(state["step"])
        self._best = np.array(state["best"], np.float32)
        self.curve = [Point(int(steps), *rest) for steps, *rest in state["curve"].tolist()]
        self._train.values[:] = state["plain"]
        if self._valid is not None:
            self._valid.values[:] = state["plain_valid"]

    def best(self) -> ProposalPolicy:
        """The policy with the best validation reward; without validation, the last one."""
        policy = copy.deepcopy(self.policy)
        torch.nn.utils.vector_to_parameters(torch.from_numpy(self._best), policy.parameters())
        return policy


def flat(policy: ProposalPolicy) -> NDArray[np.float32]:
    """(p,) a copy of all parameters as one vector."""
    vector = torch.nn.utils.parameters_to_vector(policy.parameters()).detach()
    return np.array(vector.numpy())


def generator(seed: int, *purpose: int) -> torch.Generator:
    """A PyTorch generator for a seed and a purpose; purposes have independent streams."""
    return torch.Generator().manual_seed(derived(seed, *purpose))
