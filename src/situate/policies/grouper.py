"""The Hierarchical Planner's grouper: a feed-forward network with a softmax over groups."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor, nn

from situate import _core
from situate.policies.arithmetic import array, thread_count


class Grouper(nn.Module):
    """p(g; theta_g): every unit draws its group independently (Hierarchical Planner, section 2).

    Sampling and gradients go block by block, so the probabilities of 80,000 units over 256 groups
    (80 MB) never exist at once.

    Args:
        features: (u, f) of the units.
        groups: number g of groups.
        hidden: width h of the hidden layer.
        generator: draws the initial weights (X. Glorot, Y. Bengio, AISTATS 2010, Eq. 16).
        relu: rectify the hidden units; in the released controller they are linear.
        start: (u,) initial groups, or None.
        trust: added to the logit of a unit's group in `start`. The last layer is then zero, so
            `start` alone decides at first.
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
        """(m, u) groups of m samples.

        Args:
            m: number of samples.
            generator: of the draws.
            noise: standard deviation of noise on the logits, the same for all m samples, relative
                to the root mean square of the unit's logits.
        """
        # The core draws by seed, unit and number, so its threads may draw in any order.
        seed = torch.randint(2**62, (), generator=generator)
        groups = _core.nn.sample_groups(
            **_last_layer(self.hidden(), self.last.weight, self.last.bias, self._start),
            trust=self._trust,
            m=m,
            seed=int(seed),
            noise=noise,
            threads=thread_count(),
        )
        return torch.from_numpy(groups)

    def hidden(self) -> Tensor:
        """(u, h) the hidden layer."""
        hidden: Tensor = self.first(self.features)
        return torch.relu(hidden) if self._relu else hidden

    def log_prob(self, groups: Tensor, weights: Tensor) -> Tensor:
        """The sum over samples i of w_i log p(g_i; theta_g), a differentiable number.

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


def _last_layer(
    states: Tensor, weight: Tensor, bias: Tensor, start: Tensor | None
) -> dict[str, Any]:
    """The arguments of the core that describe the last layer."""
    tensors = {"states": states, "weight": weight, "bias": bias, "start": start}
    return {name: None if tensor is None else array(tensor) for name, tensor in tensors.items()}


class _LogProb(torch.autograd.Function):
    """`Grouper.log_prob`, with the gradient computed in the same pass.

    With logits l of a unit, and n_j the total weight of the samples that put it into group j, the
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
            **_last_layer(hidden, weight, bias, start),
            trust=trust,
            groups=array(groups),
            weights=array(weights),
            threads=thread_count(),
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
