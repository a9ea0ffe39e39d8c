"""Seconds of collectives, by the costs of rings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from situate.language.training.collectives import (
    START,
    copies_seconds,
    exchange_seconds,
    gather_seconds,
    reduce_seconds,
    send_seconds,
)
from situate.language.training.machine import find_machine
from tests.language.training.runs import h100

MACHINE = replace(h100(16), latency=0.0, network_latency=0.0)
ONE = np.ones(1)


def test_a_ring_moves_each_byte_once():
    seconds = gather_seconds(MACHINE, 8 * ONE, ONE, 8e9)
    assert seconds[0] == pytest.approx(7e9 / MACHINE.link + START)


# Published: nanoseconds of all-reduces among A100 of one node, VIA-Research/vTrain, trace/a100.
@pytest.mark.parametrize(
    ("gpus", "size", "microseconds"),
    [
        (2, 2**20, 44.2), (2, 2**24, 131.9), (2, 2**26, 404.7), (2, 2**28, 1455.8),
        (8, 2**20, 92.8), (8, 2**24, 232.4), (8, 2**26, 579.9), (8, 2**28, 2162.3),
    ],
)  # fmt: skip
def test_all_reduces_take_about_as_long_as_measured(gpus, size, microseconds):
    [seconds] = reduce_seconds(find_machine("8xA100"), gpus * ONE, ONE, float(size))
    assert seconds == pytest.approx(1e-6 * microseconds, rel=0.22)


def test_an_all_reduce_of_many_bytes_is_two_rings():
    once = gather_seconds(MACHINE, 8 * ONE, ONE, 8e9)
    assert reduce_seconds(MACHINE, 8 * ONE, ONE, 8e9)[0] == pytest.approx(2 * once[0] - START)


def test_few_bytes_take_a_tree():
    machine = h100(8)
    seconds = reduce_seconds(machine, 8 * ONE, ONE, 1.0)[0]
    assert seconds == pytest.approx(6 * machine.latency + START)


def test_across_nodes_groups_share_the_adapters():
    alone = gather_seconds(MACHINE, 16 * ONE, ONE, 8e9)
    assert alone[0] == pytest.approx(8e9 * 15 / 16 / MACHINE.network + START)
    # With a stride of 8 there are eight groups, each with one GPU a node.
    beside = gather_seconds(MACHINE, 2 * ONE, 8 * ONE, 8e9)
    assert beside[0] == pytest.approx(8e9 / 2 * 8 / MACHINE.network + START)


def test_a_group_of_one_needs_no_time():
    assert gather_seconds(MACHINE, ONE, ONE, 8e9)[0] == 0
    assert exchange_seconds(MACHINE, ONE, 8e9, 2)[0] == 0
    assert copies_seconds(MACHINE, ONE, 8e9, 2)[0] == 0


def test_a_token_goes_once_to_a_node():
    machine = replace(MACHINE, link=float("inf"))
    few, many = (exchange_seconds(machine, 16 * ONE, 1e9, copies)[0] for copies in (1, 64))
    # Half of single copies leave their node; of many copies one does.
    assert few == pytest.approx(0.5e9 * 8 / machine.network)
    assert many == pytest.approx(1e9 * 8 / machine.network)


def test_copies_of_a_token_leave_its_node_one_by_one():
    machine = replace(MACHINE, link=float("inf"))
    few, many = (copies_seconds(machine, 16 * ONE, 1e9, copies)[0] for copies in (1, 64))
    assert few == pytest.approx(0.5e9 * 8 / machine.network)
    assert many == pytest.approx(64 * few)


def test_copies_take_the_links_of_their_node():
    seconds = copies_seconds(MACHINE, 8 * ONE, 1e9, 4)[0]
    # Seven of eight copies are for other GPUs.
    assert seconds == pytest.approx(4e9 * 7 / 8 / MACHINE.link)


def test_messages_between_nodes_share_the_network():
    near, far = send_seconds(MACHINE, np.array([1.0, 8.0]), 1e9)
    assert near == pytest.approx(1e9 / MACHINE.link)
    assert far == pytest.approx(8e9 / MACHINE.network)
