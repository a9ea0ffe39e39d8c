"""A sequence-to-sequence policy: it reads the groups' embeddings, then chooses a device for
each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from situate import _core
from situate.policies.arithmetic import array, thread_count
from situate.policies.attention import Attention
from situate.policies.lstm import Activations, Layers, State, input_gates, joint_bias, run_lstm
from situate.policies.shapes import Score

DEVICE_WIDTH = 32
"""Least width of a device's embedding. The LSTM's input has rank d + 1 for d devices and a start
word, so a greater width gains nothing."""


@dataclass(frozen=True)
class Memory:
    """The encoder's output for the groups; b is 1 where all samples share one encoding.

    Attributes:
        outputs: (b, g, h) hidden states of the last layer.
        keys: (b, g, a) keys of the attention.
        own: (b, g, d) logits from a group's own encoding; zeros unless `aligned`.
        state: hidden and cell state after the last group, each (layers, b, h).
    """

    outputs: Tensor
    keys: Tensor
    own: Tensor
    state: State


@dataclass(frozen=True)
class LogitScale:
    """The function from logits l to the logits that devices are drawn by.

    Attributes:
        temperature: divisor T of the logits.
        tanh_constant: C where the result is C tanh(l / T); None for l / T.
    """

    temperature: float = 1.0
    tanh_constant: float | None = None

    def scaled(self, logits: Tensor) -> Tensor:
        """The function of logits of any shape."""
        if self.tanh_constant is None:
            return logits / self.temperature
        return self.tanh_constant * torch.tanh(logits / self.temperature)


UNSCALED = LogitScale()


class Placer(nn.Module):
    """LSTM encoder and decoder with content-based attention, over the devices of g groups.

    The encoder reads one group a step. Step i of the decoder reads the trainable embedding of the
    device of group i - 1 and gives the distribution of group i's device. Attention comes after the
    decoder's LSTM: its context joins the LSTM's output before the softmax and is not fed back, as
    in the Hierarchical Planner's released controller. So if all devices are known, the decoder's
    LSTM reads the whole sequence at once; only sampling goes group by group.

    Construction and sampling draw from `generator` alone and leave PyTorch's own state unchanged.
    Parameters are 32-bit floats until `double` is called.

    Args:
        features: width f of a group's embedding.
        devices: number d of devices.
        hidden: width h of the LSTMs.
        layers: layers of the encoder and of the decoder.
        generator: draws the initial parameters, uniformly within 1 / sqrt(h).
        score: score of the attention, see `Attention`.
        width: width a of the attention.
        aligned: also join the encoder's output for a group to the decoder's output for it.
            Otherwise attention must learn which step belongs to which group.
        scale: of the logits.
        uniform: start as a uniform distribution, by an output layer of zeros (Spotlight, Algorithm
            1, line 3).
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
        scale: LogitScale = UNSCALED,
        uniform: bool = True,
    ) -> None:
        super().__init__()
        self.devices = devices
        self.scale = scale
        width_of_device = max(DEVICE_WIDTH, devices + 1)
        # On `meta` PyTorch draws no initial weights of its own, which would take from its global
        # generator.
        with torch.device("meta"):
            self.encoder = nn.LSTM(features, hidden, layers)
            self.decoder: Layers = nn.LSTM(width_of_device, hidden, layers)
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
        """Encode the groups (g, f) once for all samples, or those of every sample (k, g, f)."""
        # (g, f) to (1, g, f): one encoding that all samples share; else (k, g, f).
        groups = embeddings.expand(1, -1, -1) if embeddings.dim() == 2 else embeddings
        # Batch first to step first: (g, b, f), as the LSTM goes group by group.
        first = input_gates(self.encoder, 0, groups.transpose(0, 1))
        nothing = first.new_zeros(self.encoder.num_layers, len(groups), self.encoder.hidden_size)
        outputs, state = run_lstm(self.encoder, first, (nothing, nothing))
        outputs = outputs.transpose(0, 1)
        own = outputs.new_zeros(1, outputs.shape[1], 1) if self.own is None else self.own(outputs)
        return Memory(outputs, self.attention.keys(outputs), own, state)

    def sample(
        self, memory: Memory, allowed: Tensor, k: int, generator: Generator, noise: float = 0.0
    ) -> Tensor:
        """(k, g) sampled devices, see `draw`."""
        return self.draw(memory, allowed, k, generator, noise)[0]

    @torch.no_grad()
    def draw(
        self,
        memory: Memory,
        allowed: Tensor,
        k: int,
        generator: Generator,
        noise: float | Tensor | None = 0.0,
    ) -> tuple[Tensor, list[Activations]]:
        """Sample devices (k, g) group by group; a device that is not allowed is never drawn.

        Args:
            memory: of the groups, see `encode`.
            allowed: (g, d) or (k, g, d); at least one device of each group.
            k: number of samples.
            generator: of the draws.
            noise: standard deviation of noise on the logits, relative to their root mean square in
                that step; or the noise itself (k, g, d) in such root mean squares.

        Returns:
            The devices, and the activations of each layer of the decoder.
        """
        weights, layers = self.head.weight, range(self.decoder.num_layers)
        gumbel = _gumbel(allowed.expand(k, -1, -1), generator).to(weights)
        if isinstance(noise, float | int):
            noise = noise * _normal(gumbel.shape, generator).to(weights) if noise else None
        additive = self.attention.additive_weights()
        decoder = _core.nn.SamplerWeights(
            # The first layer reads only the device before, so its input gates are one product for
            # all d + 1 words, (d + 1, 4h), and none in any step.
            embedding=array(input_gates(self.decoder, 0, self.embedding.weight)),
            recurrent=[array(getattr(self.decoder, f"weight_hh_l{i}")) for i in layers],
            inputs=[array(getattr(self.decoder, f"weight_ih_l{i}")) for i in layers[1:]],
            biases=[array(joint_bias(self.decoder, i)) for i in layers[1:]],
            query=None if additive is None else array(additive[0]),
            v=None if additive is None else array(additive[1]),
            head=array(weights),
        )
        inputs = _core.nn.SamplerInputs(
            outputs=array(memory.outputs),
            keys=array(memory.keys),
            hidden=array(memory.state[0].expand(-1, k, -1)),
            cell=array(memory.state[1].expand(-1, k, -1)),
            own=array((memory.own + self.head.bias).expand(k, -1, -1)),
            gumbel=array(gumbel),
            noise=None if noise is None else array(noise.to(weights)),
        )
        devices, activations = _core.nn.sample_devices(
            decoder,
            inputs,
            temperature=self.scale.temperature,
            bound=self.scale.tanh_constant or 0.0,
            threads=thread_count(),
        )
        layer_activations = [Activations(*map(torch.from_numpy, layer)) for layer in activations]
        return torch.from_numpy(devices), layer_activations

    def log_probs(
        self,
        memory: Memory,
        devices: Tensor,
        allowed: Tensor,
        activations: Sequence[Activations] = (),
        noise: Tensor | None = None,
    ) -> Tensor:
        """(k, g, d) log-probability of every device, given the devices of the groups before.

        Args:
            memory, allowed: as in `draw`.
            devices: (k, g) the samples.
            activations: from `draw`, if the parameters are unchanged since.
            noise: (k, g, d) as in `draw`, if it is part of the probabilities.

        Returns:
            Minus infinity for a device that is not allowed.
        """
        k = len(devices)
        # Word d stands for the beginning. before (g, k): the device of the group before each.
        start = devices.new_full((k, 1), self.devices)
        before = torch.cat([start, devices[:, :-1]], 1).t()
        first = F.embedding(before, input_gates(self.decoder, 0, self.embedding.weight))
        hidden, cell = (state.expand(-1, k, -1) for state in memory.state)
        states, _ = run_lstm(self.decoder, first, (hidden, cell), activations)
        logits = self._logits(states.transpose(0, 1), memory, memory.own)
        if noise is not None:
            logits = logits + noise * logits.square().mean(2, keepdim=True).sqrt()
        return torch.log_softmax(logits.masked_fill(~allowed, -torch.inf), 2)

    def _logits(self, states: Tensor, memory: Memory, own: Tensor) -> Tensor:
        """(k, s, d) from states (k, s, h) of the decoder and `Memory.own` of the same groups."""
        k, s, h = states.shape
        # (k, s, h) to (b, s', h): where all samples share one encoding their queries are one long
        # list of it, so that attention is one product of matrices.
        queries = states.reshape(len(memory.outputs), -1, h)
        contexts = self.attention(queries, memory.outputs, memory.keys)
        logits: Tensor = self.head(torch.cat([queries, contexts], 2)).view(k, s, -1) + own
        return self.scale.scaled(logits)


def _normal(shape: torch.Size, generator: Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float32)


def _gumbel(allowed: Tensor, generator: Generator) -> Tensor:
    """(k, g, d) Gumbel noise, with which the largest logit is a draw from the softmax (Gumbel,
    1954); minus infinity for a device that is not allowed."""
    draws = torch.empty(allowed.shape, dtype=torch.float32).exponential_(generator=generator)
    return draws.log_().neg_().masked_fill_(~allowed, -torch.inf)


def entropy(log_probs: Tensor) -> Tensor:
    """Mean entropy over samples and groups, in nats, of log-probabilities (k, g, d)."""
    # p log p is 0 at p = 0, but 0 * -inf is NaN, in the value and in the gradient: mask first.
    terms = log_probs.exp() * log_probs.masked_fill(log_probs.isneginf(), 0.0)
    return -terms.sum(2).mean()


def divergence(old: Tensor, new: Tensor) -> Tensor:
    """Mean over samples and groups of D_KL(old || new), in nats, of log-probabilities (k, g, d)
    that are minus infinity at the same places."""
    # -inf - (-inf) is NaN where a device is not allowed; such devices count nothing.
    differences = (old - new).masked_fill(old.isneginf(), 0.0)
    return (old.exp() * differences).sum(2).mean()
