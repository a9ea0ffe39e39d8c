"""The Hierarchical Planner's two networks as TensorFlow released them.

The facts are those of `tensorflow/python/grappler/hierarchical_controller.py` (2018): its shapes,
initial weights and order of steps. `situate.policies.hierarchical` has the networks of the text.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor, nn

from situate.policies.grouper import Grouper
from situate.policies.hierarchical import Hierarchy, HierarchySample, Membership
from situate.policies.lstm import input_gates, run_lstm
from situate.policies.released_features import ReleasedGroupFeatures
from situate.policies.seq2seq import LogitScale, Memory, Placer

TANH_SCALE = 2.0
"""The factor on all parameters of the core's additive score, which turns it into tanh's."""


class _ReleasedLSTM(nn.Module):
    """One layer whose only bias is a trainable number, added to all forget gates.

    It has the attributes of `nn.LSTM` that `situate.policies.lstm` reads.

    Args:
        inputs: width f of an input.
        hidden_size: width h.
        forget: (1,) bias of the forget gates, 1 at first; layers may share it.
        generator: draws the initial weights.
    """

    num_layers = 1

    def __init__(
        self, inputs: int, hidden_size: int, forget: nn.Parameter, generator: Generator
    ) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.forget = forget
        # The release has one matrix for inputs and states, so both parts share its limit.
        bound = _glorot_bound(inputs + hidden_size, 4 * hidden_size)
        self.weight_ih_l0 = _uniform(bound, generator, 4 * hidden_size, inputs)
        self.weight_hh_l0 = _uniform(bound, generator, 4 * hidden_size, hidden_size)

    @property
    def bias_ih_l0(self) -> Tensor:
        """(4h,) zero but for the forget gates, the second of PyTorch's four."""
        none = self.forget.new_zeros(self.hidden_size)
        return torch.cat([none, self.forget.expand(self.hidden_size), none, none])

    @property
    def bias_hh_l0(self) -> Tensor:
        """(4h,) zeros."""
        # PyTorch's cell adds two biases; TensorFlow's has one, which stands in `bias_ih_l0`.
        return self.forget.new_zeros(4 * self.hidden_size)


class ReleasedPlacer(Placer):
    """An encoder that reads in both directions, and attention that sums its own keys.

    Args:
        features: width f of a group's embedding.
        devices: number d of devices.
        hidden: width h of the decoder, of attention and of device embeddings; each direction of
            the encoder has half of it.
        generator: draws the initial weights (X. Glorot, Y. Bengio, AISTATS 2010, Eq. 16).
        scale: see `Placer`.
    """

    def __init__(
        self,
        features: int,
        devices: int,
        hidden: int,
        *,
        generator: Generator,
        scale: LogitScale,
    ) -> None:
        super().__init__(
            features,
            devices,
            hidden,
            generator=generator,
            width=hidden,
            scale=scale,
        )
        del self.encoder
        forget = nn.Parameter(torch.ones(1))
        self.ahead = _ReleasedLSTM(features, hidden // 2, forget, generator)
        self.back = _ReleasedLSTM(features, hidden // 2, forget, generator)
        self.decoder = _ReleasedLSTM(hidden, hidden, nn.Parameter(torch.ones(1)), generator)
        self.embedding = nn.Embedding(devices + 1, hidden)
        self.attention.scale = TANH_SCALE
        self._begin(generator)

    def _begin(self, generator: Generator) -> None:
        """Glorot's initial weights. The word before the first device is a matrix of its own."""
        assert self.attention.query is not None
        assert self.attention.v is not None
        for matrix in (self.attention.key.weight, self.attention.query.weight, self.head.weight):
            _draw(matrix, _glorot_bound(*matrix.shape), generator)
        _draw(self.attention.v, _glorot_bound(len(self.attention.v), 1), generator)
        words = self.embedding.weight
        _draw(words[:-1], _glorot_bound(len(words) - 1, words.shape[1]), generator)
        _draw(words[-1:], _glorot_bound(1, words.shape[1]), generator)
        nn.init.zeros_(self.head.bias)
        self.head.bias.requires_grad_(False)

    def encode(self, embeddings: Tensor) -> Memory:
        """Encode the groups (g, f) once for all samples, or those of every sample (k, g, f)."""
        groups = embeddings.expand(1, -1, -1) if embeddings.dim() == 2 else embeddings
        steps = groups.transpose(0, 1)
        outputs, states = [], []
        for lstm, read in ((self.ahead, steps), (self.back, steps.flip(0))):
            nothing = read.new_zeros(1, read.shape[1], lstm.hidden_size)
            of_steps, state = run_lstm(lstm, input_gates(lstm, 0, read), (nothing, nothing))
            # Step i of the way back stays at place i, beside step i of the way ahead.
            outputs.append(of_steps)
            states.append(state)
        outputs_of_both = torch.cat(outputs, 2).transpose(0, 1)
        hidden, cell = (torch.cat(parts, 2) for parts in zip(*states, strict=True))
        keys = self.attention.keys(outputs_of_both)
        own = outputs_of_both.new_zeros(1, outputs_of_both.shape[1], 1)
        # The release's attention sums its unscaled keys, not the encoder's outputs.
        return Memory(keys / TANH_SCALE, keys, own, (hidden, cell))


class ReleasedGrouper(Grouper):
    """A grouper without biases and without an activation, whose noise is part of the
    probabilities.

    The noise is in proportion to the root mean square of all logits.

    Args:
        features: (u, f) of the units.
        groups: number g of groups.
        hidden: width between the two matrices.
        generator: draws the initial weights.
    """

    def __init__(self, features: Tensor, groups: int, hidden: int, generator: Generator) -> None:
        super().__init__(features, groups, hidden, generator)
        for layer in (self.first, self.last):
            layer.bias.requires_grad_(False)

    def noise(self, amount: float, generator: Generator) -> Tensor | None:
        """(u, g) noise in root mean squares of the logits; None for none."""
        if not amount:
            return None
        shape = len(self.features), self.last.out_features
        return amount * torch.randn(shape, generator=generator).to(self.last.weight)

    def log_probs(self, noise: Tensor | None) -> Tensor:
        """(u, g) log-probabilities with that noise."""
        logits: Tensor = self.last(self.hidden())
        if noise is not None:
            # Noise in proportion to the root mean square of the logits.
            logits = logits + noise * logits.square().mean().sqrt()
        return torch.log_softmax(logits, 1)

    @torch.no_grad()
    def draw(self, noise: Tensor | None, generator: Generator) -> Tensor:
        """(1, u) groups."""
        log_p = self.log_probs(noise)
        draws = torch.empty(log_p.shape).exponential_(generator=generator).to(log_p)
        # The largest of logits with Gumbel noise is a draw from their softmax (Gumbel, 1954).
        return (log_p - draws.log_()).argmax(1).unsqueeze(0)


class ReleasedHierarchy(Hierarchy):
    """p(g; theta_g) p(d | g; theta_d) of the release, with noise in the probabilities.

    Args:
        grouper: of the free units of `membership`.
        placer, membership, embeddings: see `Hierarchy`.
    """

    def __init__(
        self,
        grouper: ReleasedGrouper,
        placer: ReleasedPlacer,
        membership: Membership,
        embeddings: ReleasedGroupFeatures,
    ) -> None:
        super().__init__(grouper, placer, membership, embeddings)
        self._grouper = grouper

    def draw(
        self, s: int, placements: int, generator: Generator, noise: float = 0.0
    ) -> HierarchySample:
        """Draw a grouping and s samples of its devices."""
        return self._draw(s, generator, noise, empty=False)

    def redraw(self, s: int, generator: Generator, noise: float = 0.0) -> HierarchySample:
        """Draw anew as the release does in its update: its placer then reads embeddings of
        zeros."""
        return self._draw(s, generator, noise, empty=True)

    def _draw(self, s: int, generator: Generator, noise: float, empty: bool) -> HierarchySample:
        grouper_noise = self._grouper.noise(noise, generator)
        groups = self._grouper.draw(grouper_noise, generator)
        memory, allowed = self.encode(groups, torch.zeros(s, dtype=torch.long))
        if empty:
            width = self._embeddings.width
            memory = self.placer.encode(memory.outputs.new_zeros(allowed.shape[1], width))
        placer_noise = noise * torch.randn(allowed.shape, generator=generator) if noise else None
        devices, activations = self.placer.draw(memory, allowed, s, generator, placer_noise)
        grouping = torch.zeros(s, dtype=torch.long)
        noises = grouper_noise, placer_noise
        return HierarchySample(groups, grouping, memory, allowed, devices, activations, noises)

    def objective(
        self, sample: HierarchySample, advantage: Tensor, entropy_weight: float = 0.0
    ) -> Tensor:
        """1/s sum_i A_i (log p(g_i; theta_g) + log p(d_i | g_i; theta_d)); the release has no
        entropy."""
        weights = advantage / len(advantage)
        grouper_noise, placer_noise = sample.noises
        log_p = self.placer.log_probs(
            sample.memory, sample.devices, sample.allowed, sample.activations, placer_noise
        )
        of_placement = log_p.gather(2, sample.devices.unsqueeze(2)).sum((1, 2))
        of_units = self._grouper.log_probs(grouper_noise).gather(1, sample.groups.t())
        # All samples share one grouping, which has the weight of all of them.
        return of_units.sum() * weights.sum() + of_placement @ weights


def _glorot_bound(rows: int, columns: int) -> float:
    return math.sqrt(6 / (rows + columns))


def _uniform(bound: float, generator: Generator, *shape: int) -> nn.Parameter:
    parameter = nn.Parameter(torch.empty(shape))
    _draw(parameter, bound, generator)
    return parameter


@torch.no_grad()
def _draw(tensor: Tensor, bound: float, generator: Generator) -> None:
    tensor.uniform_(-bound, bound, generator=generator)
