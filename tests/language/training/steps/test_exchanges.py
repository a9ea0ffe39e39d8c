"""Exchanges as transfers around rings."""

from __future__ import annotations

import numpy as np
import pytest

from situate.language.training.layout import Layout
from situate.language.training.steps.exchanges import Rings, exchange, ring_seconds
from situate.language.training.steps.site import find_site


# Rings: tensor parallelism has neighbours, replicas are as far apart as its degree.
def test_rings_of_a_layout():
    rings = Rings.of(Layout(dp=2, tp=2, ep=4))
    assert rings.tensor.tolist() == [1, 0, 3, 2]
    assert rings.experts.tolist() == [1, 2, 3, 0]
    assert rings.states.tolist() == [2, 3, 0, 1]


def test_the_ring_of_keys_has_the_stride_of_tensor_parallelism():
    assert Rings.of(Layout(dp=2, cp=2, tp=2)).context.tolist() == [2, 3, 0, 1, 6, 7, 4, 5]


# The bytes of a transfer take the exchange's seconds on the links of the ring.
def test_bytes_inside_a_node():
    site = find_site("h100-8")
    ring_exchange = exchange(site, Rings.of(Layout(tp=8)).tensor, 1e-3)
    link = site.cluster
    assert ring_exchange.size / link.bandwidth[0, 1] + link.latency[0, 1] == pytest.approx(
        1e-3, rel=1e-6
    )


def test_rings_across_nodes_share_the_network():
    site = find_site("h100-2x8")
    ring = Rings.of(Layout(dp=2, tp=8)).states
    cluster = site.cluster
    alone = 1e-2 / 8 - cluster.latency[0, 8]
    assert exchange(site, ring, 1e-2).size == int(alone * cluster.bandwidth[0, 8])
    assert ring_seconds(site, ring, 1e-2) == pytest.approx(1e-2 / 8)


def test_an_exchange_below_a_latency_is_part_of_the_op():
    site = find_site("h100-8")
    ring_exchange = exchange(site, Rings.of(Layout(tp=8)).tensor, 1e-6)
    assert ring_exchange.next is None
    assert ring_exchange.rest == 1e-6


def test_one_device_exchanges_nothing():
    site = find_site("h100-8")
    assert exchange(site, np.arange(8), 0.0).next is None
    assert ring_seconds(site, np.arange(8), 1.0) == 0.0
