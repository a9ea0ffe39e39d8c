"""The Hierarchical Planner's grouper: a feed-forward network and a softmax over groups."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor, nn

from situate import _core
from situate.policies.arithmetic import threads
from situate.policies.core import array


class Grouper(nn.Module):
    """p(g; theta_g): every unit draws its group on its own (Hierarchical Planner, section 2).

    Sampling and gradients go block by block, since the probabilities of 80,000 units over 256
    groups are 80 MB that need never exist at once.

    Args:
        features: (u, f) of the units.
        groups: number g of groups.
        hidden: width h of the one hidden layer.
        generator: draws the initial weights (X. Glorot, Y. Bengio, AISTATS 2010, Eq. 16).
        relu: whether hidden units are rectified; the released controller's are linear.
        start: (u,) groups that the grouper begins with, or None.
        trust: what is added to the logit of a unit's group in `start`; the last layer is zero
            then, so that `start` alone decides at first.
    """

    features: Tensor

    def __init__(
        self,
        features: Tensor,
        groups: int,
        hidden: int,
        generator: Generator,
        *,
        relu: bool = False,
        start: Tensor | None = None,
        trust: float = 0.0,
    ) -> None:
        super().__init__()
        self.register_buffer("features", features)
        # On `meta` PyTorch draws no initial weights of its own, which would take from its global
        # generator.
        with torch.device("meta"):
            self.first = nn.Linear(features.shape[1], hidden)
            self.last = nn.Linear(hidden, groups)
        self.first.to_empty(device="cpu").float()
        self.last.to_empty(device="cpu").float()
        self._initialise(generator, uniform=start is not None)
        self._relu = relu
        self._start, self._trust = start, trust

    def _initialise(self, generator: Generator, uniform: bool) -> None:
        nn.init.xavier_uniform_(self.first.weight, generator=generator)
        nn.init.xavier_uniform_(self.last.weight, generator=generator)
        nn.init.zeros_(self.first.bias)
        nn.init.zeros_(self.last.bias)
        if uniform:
            nn.init.zeros_(self.last.weight)

    @torch.no_grad()
    def sample(self, m: int, generator: Generator, noise: float = 0.0) -> Tensor:
        """Groups (m, u) of m samples.

        Args:
            m: number of samples.
            generator: of the draws.
            noise: standard deviation of what is added to the logits of the draws, the same for all
                m, relative to the root mean square of the unit's logits.
        """
        # The core draws by seed, unit and number, so its threads may draw in any order.
        seed = torch.randint(2**62, (), generator=generator)
        drawn = _core.nn.sample_groups(
            **_arrays(self.hidden(), self.last.weight, self.last.bias, self._start),
            trust=self._trust,
            m=m,
            seed=int(seed),
            noise=noise,
            threads=threads(),
        )
        return torch.from_numpy(drawn)

    def hidden(self) -> Tensor:
        """(u, h) the hidden layer."""
        hidden: Tensor = self.first(self.features)
        return torch.relu(hidden) if self._relu else hidden

    def log_prob(self, groups: Tensor, weights: Tensor) -> Tensor:
        """The sum over samples i of w_i log p(g_i; theta_g), a number to differentiate.

        Args:
            groups: (m, u) the samples.
            weights: (m,) w.
        """
        total: Tensor = _LogProb.apply(  # type: ignore[no-untyped-call]
            self.hidden(),
            self.last.weight,
            self.last.bias,
            self._start,
            self._trust,
            groups,
            weights,
        )
        return total


def _arrays(states: Tensor, weight: Tensor, bias: Tensor, start: Tensor | None) -> dict[str, Any]:
    """The last layer, as the core takes it."""
    given = {"states": states, "weight": weight, "bias": bias, "start": start}
    return {name: None if each is None else array(each) for name, each in given.items()}


class _LogProb(torch.autograd.Function):
    """`Grouper.log_prob`, with its gradient made in the same pass.

    With l the logits of a unit and n_j the weights of the samples that put it into group j, the
    gradient of sum_i w_i log p(g_i) by l_j is n_j - p_j sum_i w_i.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        start: Tensor | None,
        trust: float,
        groups: Tensor,
        weights: Tensor,
    ) -> Tensor:
        total, *saved = _core.nn.group_gradients(
            **_arrays(hidden, weight, bias, start),
            trust=trust,
            groups=array(groups),
            weights=array(weights),
            threads=threads(),
        )
        # Gradients by hidden (u, h), weight (g, h) and bias (g,) are made in the same pass as the
        # value: the probabilities (u, g) that they need are too large to be kept, or to be made
        # twice.
        ctx.save_for_backward(*map(torch.from_numpy, saved))
        return hidden.new_tensor(total)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scale = gradients[0]
        of_hidden, of_weight, of_bias = (scale * saved for saved in ctx.saved_tensors)
        return of_hidden, of_weight, of_bias, None, None, None, None
