"""Machines of presets, files and texts."""

from __future__ import annotations

import pytest

from situate.errors import ClusterError
from situate.language.training.machine import find_machine

TWO_NODES = """
name = "two"
[[devices]]
name = "a"
count = {first}
memory = "16 GiB"
flops.float32 = 10e12
[[devices]]
name = "b"
count = 2
memory = "16 GiB"
flops.float32 = 10e12
[[links]]
from = "*"
to = "*"
bandwidth = 1e9
[[links]]
from = "a*"
to = "a*"
bandwidth = 50e9
[[links]]
from = "b*"
to = "b*"
bandwidth = 50e9
"""


# Nodes by their links.
def test_a_preset_has_nodes_and_a_network():
    machine = find_machine("h100-2x8")
    assert (machine.count, machine.node) == (16, 8)
    assert (machine.link, machine.network) == (375e9, 45e9)


def test_gpus_with_fast_links_are_one_node(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(TWO_NODES.format(first=2))
    machine = find_machine(str(path))
    assert (machine.node, machine.link) == (2, 50e9)
    # Every pair across has a channel of its own.
    assert machine.network == 4e9


def test_nodes_of_unequal_size_are_refused(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(TWO_NODES.format(first=3))
    with pytest.raises(ClusterError, match="nodes of 3, 2 GPUs"):
        find_machine(str(path))


# Machines by a text.
@pytest.mark.parametrize(
    ("text", "count", "node"),
    [("4x8xH100", 32, 8), ("32xH100", 32, 8), ("2xRTX 4090", 2, 2), ("A100", 1, 1)],
)
def test_a_text_names_nodes_and_gpus(text, count, node):
    machine = find_machine(text)
    assert (machine.count, machine.node) == (count, node)
    assert machine.is_equal


def test_unequal_gpus_are_joined_by_a_plus():
    machine = find_machine("24GiB+12GiB")
    assert not machine.is_equal
    assert machine.weakest.memory == machine.gpus[1].memory < machine.gpus[0].memory
    assert machine.weakest.rate("float16") <= machine.gpus[0].rate("float16")


@pytest.mark.parametrize("text", ["8xH1000", "nowhere", "0xH100", "cpu.toml", "9999999xH100"])
def test_machines_that_do_not_exist_are_refused(text):
    with pytest.raises(ClusterError, match=r"^[^\n]+$"):
        find_machine(text)


def test_an_unknown_gpu_beside_others_is_named():
    with pytest.raises(ClusterError, match="no GPU 'M3 Max' in the table"):
        find_machine("RTX 4090+M3 Max")


def test_sizes_of_machines_are_limited():
    with pytest.raises(ClusterError, match="1000000xH100: must be 1 to 131072 GPUs"):
        find_machine("1000000xH100")


def test_a_device_without_a_rate_of_16_bits_has_that_of_32(tmp_path):
    machine = find_machine("k80-2")
    assert machine.weakest.rate("float16") == machine.weakest.rate("float32") == 4.37e12
