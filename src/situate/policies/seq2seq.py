"""A sequence-to-sequence policy: reads the groups' embeddings, then says a device for each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from situate.policies.attention import Attention
from situate.policies.shape import Score
from situate.policies.unrolled import Unrolled

DEVICE_WIDTH = 32
"""Least width of a device's embedding. What the LSTM can make of d devices and a beginning has rank
d + 1, so a greater width would gain nothing, and reading this one costs next to nothing."""


@dataclass(frozen=True)
class Memory:
    """What the encoder made of the groups; b is 1 where all samples share one encoding.

    Attributes:
        outputs: (b, g, h) hidden states of the last layer.
        keys: (b, g, a) what attention compares with.
        own: (b, g, d) what a group's encoding adds to its logits; zeros unless `aligned`.
        state: hidden and cell state after the last group, each (layers, b, h).
    """

    outputs: Tensor
    keys: Tensor
    own: Tensor
    state: tuple[Tensor, Tensor]


class Placer(nn.Module):
    """LSTM encoder and decoder with content-based attention, over the devices of g groups.

    The encoder reads one group a step. Step i of the decoder reads the trainable embedding of the
    device of group i - 1 and gives the distribution of group i's device. Attention comes after the
    decoder's LSTM: its context is joined to the LSTM's output before the softmax and not fed back,
    as in the Hierarchical Planner's released controller. So where all devices are known, the
    decoder is one call of a fused LSTM over the whole sequence; only sampling goes step by step.

    Constructing and sampling draw from `generator` alone, and nothing here changes PyTorch's own
    state. Parameters are 32-bit floats until `double` is called.

    Args:
        features: width f of a group's embedding.
        devices: number d of devices.
        hidden: width h of the LSTMs.
        layers: of encoder and decoder each.
        generator: draws the initial parameters, uniformly within 1 / sqrt(h).
        score: how attention compares, see `Attention`.
        width: a of the space in which it compares.
        aligned: whether the encoder's output for a group is joined to the decoder's output for it
            as well. Otherwise attention has to learn which step decides on which group.
        temperature: T by which logits are divided.
        tanh_constant: C where logits are C tanh(logits / T); None for logits / T.
        uniform: whether the policy begins as a uniform distribution, by an output layer of zeros
            (Spotlight, Algorithm 1, line 3).
    """

    def __init__(
        self,
        features: int,
        devices: int,
        hidden: int,
        layers: int = 1,
        *,
        generator: Generator,
        score: Score = "additive",
        width: int = 32,
        aligned: bool = False,
        temperature: float = 1.0,
        tanh_constant: float | None = None,
        uniform: bool = True,
    ) -> None:
        super().__init__()
        self.devices = devices
        self.temperature = temperature
        self.tanh_constant = tanh_constant
        width_of_device = max(DEVICE_WIDTH, devices + 1)
        with torch.device("meta"):
            self.encoder = nn.LSTM(features, hidden, layers)
            self.decoder = nn.LSTM(width_of_device, hidden, layers)
            self.embedding = nn.Embedding(devices + 1, width_of_device)
            self.attention = Attention(hidden, score, width)
            self.head = nn.Linear(2 * hidden, devices)
            self.own = nn.Linear(hidden, devices, bias=False) if aligned else None
        self.to_empty(device="cpu").float()
        self._initialise(hidden**-0.5, uniform, generator)

    def _initialise(self, bound: float, uniform: bool, generator: Generator) -> None:
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        if uniform:
            for layer in filter(None, (self.head, self.own)):
                for parameter in layer.parameters():
                    nn.init.zeros_(parameter)

    def encode(self, embeddings: Tensor) -> Memory:
        """Read the groups (g, f) once for all samples, or those of every sample (k, g, f)."""
        groups = embeddings.expand(1, -1, -1) if embeddings.dim() == 2 else embeddings
        outputs, state = self.encoder(groups.transpose(0, 1))
        outputs = outputs.transpose(0, 1)
        own = outputs.new_zeros(1, outputs.shape[1], 1) if self.own is None else self.own(outputs)
        return Memory(outputs, self.attention.keys(outputs), own, state)

    @torch.no_grad()
    def sample(
        self, memory: Memory, allowed: Tensor, k: int, generator: Generator, noise: float = 0.0
    ) -> Tensor:
        """Devices (k, g), drawn group by group; a device that is not allowed is never drawn.

        Args:
            memory: of the groups, see `encode`.
            allowed: (g, d) or (k, g, d); at least one device of each group.
            k: number of samples.
            generator: of the draws.
            noise: standard deviation of what is added to the logits of the draws, relative to the
                logits' root mean square.
        """
        decoder = Unrolled(self.decoder, self.embedding.weight, memory.state, k)
        gumbel = _gumbel(allowed.expand(k, -1, -1), generator)
        devices = [torch.full((k,), self.devices)]
        for i in range(gumbel.shape[1]):
            states = decoder.step(devices[-1]).unsqueeze(1)
            logits = self._logits(states, memory, memory.own[:, i : i + 1]).squeeze(1)
            if noise:
                logits = _shaken(logits, noise, generator)
            devices.append((logits + gumbel[:, i]).argmax(1))
        return torch.stack(devices[1:], 1)

    def log_probs(self, memory: Memory, devices: Tensor, allowed: Tensor) -> Tensor:
        """(k, g, d) logarithm of the probability of every device, given those before it.

        Args:
            memory, allowed: as in `sample`.
            devices: (k, g) the samples.

        Returns:
            Minus infinity where a device is not allowed.
        """
        k = len(devices)
        start = devices.new_full((k, 1), self.devices)
        before = self.embedding(torch.cat([start, devices[:, :-1]], 1))
        hidden, cell = (state.expand(-1, k, -1).contiguous() for state in memory.state)
        states, _ = self.decoder(before.transpose(0, 1), (hidden, cell))
        logits = self._logits(states.transpose(0, 1), memory, memory.own)
        return torch.log_softmax(logits.masked_fill(~allowed, -torch.inf), 2)

    def _logits(self, states: Tensor, memory: Memory, own: Tensor) -> Tensor:
        """(k, s, d) from states (k, s, h) of the decoder and `Memory.own` of the same groups."""
        k, s, h = states.shape
        asking = states.reshape(len(memory.outputs), -1, h)
        contexts = self.attention(asking, memory.outputs, memory.keys)
        logits: Tensor = self.head(torch.cat([asking, contexts], 2)).view(k, s, -1) + own
        if self.tanh_constant is None:
            return logits / self.temperature
        return self.tanh_constant * torch.tanh(logits / self.temperature)


def _gumbel(allowed: Tensor, generator: Generator) -> Tensor:
    """(k, g, d) noise that makes the largest logit a draw from their softmax (Gumbel, 1954), minus
    infinity where a device is not allowed."""
    draws = torch.empty(allowed.shape, dtype=torch.float32).exponential_(generator=generator)
    return draws.log_().neg_().masked_fill_(~allowed, -torch.inf)


def _shaken(logits: Tensor, noise: float, generator: Generator) -> Tensor:
    size = noise * logits.square().mean().sqrt()
    return logits + size * torch.randn(logits.shape, generator=generator, dtype=logits.dtype)
