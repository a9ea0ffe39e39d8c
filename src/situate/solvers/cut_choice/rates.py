"""Seconds of the exchanges of tensors within a team of devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.letter_graph import SUM, WHOLE
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.solvers.cut_choice.divisions import Division

Form = tuple[int, int]
"""A class, `WHOLE` or `SUM`, and the number of parts; (WHOLE, 1) is on one device."""


@dataclass(frozen=True)
class Rates:
    """Seconds of a team's exchanges, from the slowest link and device of the team.

    Attributes:
        latency, bandwidth: of a link.
        shares_channel: True if a device sends to all others through one channel.
        launch: seconds of a launch.
        memory: bytes per second of a device's own memory.
        parts: the number of devices.
        largest: the largest share of a device in the parts of a tensor.
    """

    latency: float
    bandwidth: float
    shares_channel: bool
    launch: float
    memory: float
    parts: int
    largest: float

    @classmethod
    def of(cls, problem: Problem, division: Division) -> Rates:
        """The rates of the first accelerators, one for each part."""
        # Two at least, because whole ops on one device exchange tensors over a link.
        members = accelerators(problem)[: max(2, division.count)]
        pairs = [(a, b) for a in members for b in members if a != b]
        devices = [problem.cluster.devices[d] for d in members]
        channels = {int(problem.channel[a, b]) for a, b in pairs}
        return cls(
            max((float(problem.latency[a, b]) for a, b in pairs), default=0.0),
            min((float(problem.bandwidth[a, b]) for a, b in pairs), default=np.inf),
            len(channels) < len(pairs),
            max(device.launch for device in devices),
            min(device.bandwidth for device in devices),
            division.count,
            max(division.weights),
        )

    def part(self, count: int) -> float:
        """The share of the largest of so many parts in a tensor."""
        return self.largest if count == self.parts else 1 / count

    def send(self, nbytes: float, receivers: int) -> float:
        """Seconds in which each device sends so many bytes to each of so many others."""
        one = self.latency + nbytes / self.bandwidth
        return one * (receivers if self.shares_channel else 1) if receivers else 0.0

    def kernel(self, nbytes: float, launches: int = 1) -> float:
        """Seconds of ops that read and write so many bytes together."""
        return launches * self.launch + nbytes / self.memory

    def exchange(self, source: Form, target: Form, nbytes: int) -> float:
        """Seconds until a tensor of one form is there in another form."""
        (have, k), (want, n) = source, target
        if have == SUM:
            return self._summed(k, target, nbytes)
        if have == WHOLE:
            return self._spread(k, target, nbytes)
        if want == WHOLE:
            others = n - 1 if n > 1 else 1
            return self.send(nbytes * self.part(k), others) + self.kernel(2 * nbytes)
        # A part is cut into n slices, and the slices of all k join to a part of the other kind.
        pieces = self.kernel(2 * nbytes * self.part(k), n) + self.kernel(2 * nbytes * self.part(n))
        return pieces + self.send(nbytes * self.part(k) / n, n - 1)

    def _spread(self, k: int, target: Form, nbytes: int) -> float:
        """From a whole tensor, on one device or on each of k."""
        want, n = target
        if want == WHOLE:
            return 0.0 if k >= n else self.send(nbytes, n - 1)
        # Each device has the whole, and cuts a part of its own.
        if k == n:
            return self.kernel(2 * nbytes * self.part(n))
        return self.kernel(2 * nbytes, n) + self.send(nbytes * self.part(n), n - 1)

    def _summed(self, k: int, target: Form, nbytes: int) -> float:
        """From partial results."""
        want, n = target
        if want != WHOLE:
            nbytes_of_part = nbytes * self.part(n)
            adds = self.kernel(3 * (k - 1) * nbytes_of_part, k - 1)
            return self.kernel(2 * nbytes, n) + self.send(nbytes_of_part, n - 1) + adds
        if n == 1:
            return self.send(nbytes, 1) + self.kernel(3 * (k - 1) * nbytes, k - 1)
        # A reduce-scatter, then an all-gather.
        return self._summed(k, (0, k), nbytes) + self.exchange((0, k), target, nbytes)
