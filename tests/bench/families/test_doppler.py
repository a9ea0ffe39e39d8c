"""DOPPLER's graphs."""

from __future__ import annotations

import pytest

from situate.bench.families.doppler import CP_SAT, instances
from situate.errors import ReadError
from tests.readers.test_doppler import SMALL


def test_every_graph_is_on_four_and_on_eight_devices(tmp_path):
    (tmp_path / "chain_mm_112nodes.txt").write_bytes(SMALL)
    four, eight = instances(tmp_path)
    assert (four.name, eight.name) == ("chain_mm_112nodes on 4", "chain_mm_112nodes on 8")
    assert four.reference.value == four.reference.bound == 1200.07
    assert eight.reference is None
    assert four.make().d == 4


def test_no_published_bound_is_rounded_above_what_four_devices_need():
    """All of a graph's work, as docs/formats/doppler.md has it, in equal shares."""
    for (name, devices), work in (
        (("chain_mm_112nodes", 4), 4800.28),
        (("ffnn_192nodes", 4), 226.78),
    ):
        assert CP_SAT[name, devices].bound <= work / devices


def test_a_folder_without_graphs_is_refused(tmp_path):
    with pytest.raises(ReadError, match=r"no \.txt files of DOPPLER"):
        instances(tmp_path)
