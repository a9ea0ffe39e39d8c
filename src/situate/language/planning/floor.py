"""Seconds that no placement of a model's weights is below, whatever flags can say.

Every part of a layer may be divided over all devices, which all run at once, and no data crosses
between them. With x the share of part i on device d, that is the linear program

    min T  subject to  sum_i x[i, d] seconds[i, d] <= T,  sum_i x[i, d] bytes[i] <= memory[d],
                       sum_d x[i, d] = 1,  x >= 0.

Any weights y (of sum 1) and prices p of memory give a lower bound of it, by weak duality:

    sum_i min_d (y[d] seconds[i, d] + p[d] bytes[i]) - sum_d p[d] memory[d].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.language.layout import HOST
from situate.language.planning.planner import Planner
from situate.language.planning.prices import PriceList

Floats = NDArray[np.float64]

STEPS = 200
"""Steps of the search for weights and prices."""


def floor_seconds(planner: Planner) -> float:
    """Seconds of the objective that no placement is below, with the best of the ubatches."""
    prices = PriceList(planner.times, planner.work)
    least = min(_floor(planner, prices, ubatch) for ubatch in planner.ubatches)
    return least + planner.work.drafting_seconds


def _floor(planner: Planner, price_list: PriceList, ubatch: int) -> float:
    loads = planner.capacity.loads(ubatch, False)
    trunk, experts, output = (
        sum(parts, np.float64(0))
        for parts in zip(
            *(
                (
                    count * (_anywhere(t.dense, t.dense_upload, offloads) + t.attention),
                    count * _anywhere(t.experts, t.expert_upload, offloads),
                    count * t.output,
                )
                for count, t, offloads in price_list.tables(ubatch)
            ),
            strict=True,
        )
    )
    seconds = np.vstack([trunk, experts, output])
    # The output without its bytes keeps the bound valid.
    sizes = np.concatenate([loads.trunk, loads.experts, [0]]).astype(float)
    # Unlimited memory is as good as several times all bytes, and finite.
    memory = np.array([device.memory for device in planner.home.processors], float)
    return dual_bound(seconds, sizes, np.minimum(memory, 4 * sizes.sum() + 1))


def _anywhere(seconds: Floats, uploads: Floats, offloads: bool) -> Floats:
    """(layers, devices) seconds where host memory is read by the host and by all GPUs at once."""
    if not offloads:
        return seconds
    with np.errstate(divide="ignore"):
        # Parts of the weights are read at once, so that rates add up.
        rates = 1 / seconds[:, HOST] + (1 / uploads[:, :HOST]).sum(axis=1)
    result = seconds.copy()
    result[:, HOST] = 1 / rates
    return result


def dual_bound(seconds: Floats, sizes: Floats, memory: Floats) -> float:
    """A lower bound of the linear program, by subgradient steps on its dual.

    Args:
        seconds: (parts, devices).
        sizes: (parts,) bytes.
        memory: (devices,) bytes.
    """
    scale = seconds.min(axis=1).sum()
    if scale <= 0 or sizes.sum() > memory.sum():
        return 0.0 if scale <= 0 else float("inf")
    costs, units, room = seconds / scale, sizes / sizes.sum(), memory / sizes.sum()
    speeds = 1 / np.maximum(costs.sum(axis=0), 1e-12)
    # Beside shares by speed, one device may be the limit, where the memory of others is short.
    starts = [speeds / speeds.sum(), *(0.99 * np.eye(len(room)) + 0.01 / len(room))]
    return max(_ascent(costs, units, room, start) for start in starts) * float(scale)


def _ascent(costs: Floats, units: Floats, room: Floats, weights: Floats) -> float:
    """The best value of the dual on a way of subgradient steps."""
    prices = np.zeros(len(room))
    best, rows = 0.0, np.arange(len(units))
    for step in range(STEPS):
        # Lagrangian: weights join the devices' times, prices charge bytes beyond their room.
        reduced = weights * costs + prices * units[:, None]
        choice = reduced.argmin(axis=1)
        best = max(best, float(reduced[rows, choice].sum() - prices @ room))
        # (devices,) the subgradient: seconds and bytes of the parts on each device.
        busy = np.bincount(choice, costs[rows, choice], len(room))
        filled = np.bincount(choice, units, len(room))
        rate = 1.0 / (4 + step)
        # Multiplicative steps keep the weights positive.
        weights = weights * np.exp(np.clip(rate * busy / max(busy.max(), 1e-12), -5, 5))
        weights /= weights.sum()
        # Prices are of the size of the weighted costs.
        step_size = rate * float((weights * costs.sum(axis=0)).max())
        prices = np.maximum(0.0, prices + step_size * (filled - room))
    return best
