"""Independent softmax distributions over the devices of every group, with closed-form gradients.

Arrays of distributions are (d, g), devices first, so loops over groups run along contiguous memory.
They have single precision: at 20,000 groups a step is bound by memory traffic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

MIN_LOG_PROBABILITY = -80.0
"""The smallest log-probability of an allowed device."""


class Softmax:
    """Distributions over d devices, one for each of g groups (Post, Eq. 2 and 3).

    Args:
        allowed: (g, d) the devices that each group may use, at least one.

    Attributes:
        logits: (d, g) preferences u; minus infinity for a device that is not allowed.
    """

    def __init__(self, allowed: NDArray[np.bool_]) -> None:
        self.allowed = np.ascontiguousarray(allowed.T)
        self.logits: Array = np.where(self.allowed, 0.0, -np.inf).astype(np.float32)

    @property
    def probabilities(self) -> Array:
        """(d, g) f(d_m = j | u_m) (Post, Eq. 2)."""
        return softmax(self.logits)

    def sample(self, k: int, generator: np.random.Generator) -> NDArray[np.int32]:
        """(k, g) devices drawn independently; a device of probability 0 is never drawn."""
        p = self.probabilities
        # Inverse of the distribution function: a device's number is how many cumulative sums are
        # not above the draw. Device by device on (k, g), without an array (k, g, d).
        uniform = generator.random((k, p.shape[1]), np.float32)
        devices = np.zeros(uniform.shape, np.min_scalar_type(len(p)))
        below = np.zeros_like(p[0])
        for of_device in p[:-1]:
            below += of_device
            devices += (uniform >= below).view(np.uint8)
        # (g,) the last device with any probability: rounding may leave the sums below a draw near
        # 1, and would lead past it to devices that are not allowed.
        last = len(p) - 1 - (p[::-1] > 0).argmax(axis=0)
        np.minimum(devices, last.astype(devices.dtype), out=devices)
        return devices.astype(np.int32)

    def estimate(self, devices: NDArray[np.int32], epsilon: float) -> None:
        """Set the probabilities to the devices' frequencies (Post, Eq. 10) in samples (k, g), mixed
        with a uniform distribution over the allowed devices (Algorithm 1, line 12)."""
        frequency = counts(devices, np.full(len(devices), 1 / len(devices)), len(self.allowed))
        uniform = self.allowed / self.allowed.sum(axis=0)
        self.assume((1 - epsilon) * frequency + epsilon * uniform)

    def split(self, whole: NDArray[np.int32], allowed: NDArray[np.bool_]) -> Softmax:
        """Distributions of parts of the groups.

        A part takes over its group's probabilities; a device that only the part may use gets an
        even share.

        Args:
            whole: (p,) the group of each part.
            allowed: (p, d) the devices that each part may use.
        """
        parts = Softmax(allowed)
        p = self.probabilities.take(whole, axis=1)
        p[parts.allowed & ~self.allowed.take(whole, axis=1)] = 1 / len(p)
        parts.assume(p)
        return parts

    def assume(self, probabilities: NDArray[np.floating]) -> None:
        """Set the probabilities to (d, g) values, normalised over the allowed devices."""
        with np.errstate(divide="ignore"):
            logits = np.log(probabilities)
        logits = np.where(self.allowed, np.maximum(logits, MIN_LOG_PROBABILITY), -np.inf)
        self.logits = logits.astype(np.float32)


def softmax(logits: Array) -> Array:
    """Probabilities (d, g) of preferences (d, g)."""
    # The largest exponent becomes 0, so that exp cannot overflow; -inf gives exactly 0.
    p: Array = logits - logits.max(axis=0)
    np.exp(p, out=p)
    p /= p.sum(axis=0)
    return p


def counts(devices: NDArray[np.int32], weights: NDArray[np.float64], d: int) -> Array:
    """(d, g) the total weight (k,) of the samples (k, g) that put a group on a device."""
    g = devices.shape[1]
    # (device, group) as one number, (k, g) to (d g,) sums in one pass over the samples.
    cell = devices * np.int32(g) + np.arange(g, dtype=np.int32)
    total = np.bincount(cell.ravel(), np.repeat(weights, g), d * g)
    return total.reshape(d, g).astype(np.float32)


def policy_gradient(p: Array, weighted: Array) -> Array:
    """(d, g) gradient of sum_n w_n log f(d_n | u) by u.

    Args:
        p: (d, g) probabilities.
        weighted: (d, g) `counts` of the samples with their weights w.
    """
    return np.asarray(weighted - p * weighted.sum(axis=0))


class Surrogate:
    """Post's Eq. 11 as a function of new preferences u; see docs/methods/post.md.

    Args:
        old: (d, g) probabilities at sampling.
        weighted: (d, g) `counts` of the samples, with their advantages over their number.
        beta: weight of the KL divergence of the new distribution from the old one.
    """

    def __init__(self, old: Array, weighted: Array, beta: float) -> None:
        # Importance ratios new / old appear times `weighted`; dividing once leaves one product a
        # step.
        self._ratio_weight = np.divide(weighted, old, out=np.zeros_like(old), where=old > 0)
        self._beta = np.float32(beta)
        self._back: Array = self._beta * old

    def gradient(self, p: Array) -> Array:
        """(d, g) gradient by u at new probabilities p (d, g)."""
        # In place on (d, g): with r the ratio-weighted counts, r p - p (sum r p + beta) + beta old.
        gradient: Array = self._ratio_weight * p
        pull = gradient.sum(axis=0)
        pull += self._beta
        gradient -= p * pull
        gradient += self._back
        return gradient


def kl_divergence(old: Array, new: Array) -> float:
    """Mean over the groups of D_KL(old || new), in nats; new log-probabilities are at least
    `MIN_LOG_PROBABILITY`."""
    # In the limit, 0 log 0 is 0.
    is_possible = old > 0
    ratio = np.log(old[is_possible]) - np.log(
        np.maximum(new[is_possible], np.exp(np.float32(MIN_LOG_PROBABILITY)))
    )
    return float((old[is_possible] * ratio).sum() / old.shape[1])
