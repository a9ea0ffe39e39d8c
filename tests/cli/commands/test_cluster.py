"""`situate cluster`."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.data.cluster import Cluster


# Presets and clusters are shown as text and as JSON.
def test_list_names_every_preset(situate):
    run = situate("cluster", "list")
    assert [line.split()[0] for line in run.out.splitlines()] == Cluster.presets()


def test_list_is_json_too(situate):
    assert list(situate("cluster", "list", "--json").json["clusters"]) == Cluster.presets()


@pytest.mark.parametrize("name", ["k80-4", "identical:2"])
def test_show_names_every_device_and_link(situate, name):
    run = situate("cluster", "show", name)
    for device in Cluster.find(name).names:
        assert device in run.out
    assert "->" in run.out


def test_show_says_what_crossing_costs_beside_the_link(situate):
    cluster = Path("here.toml")
    cluster.write_text(
        'name = "here"\nsynchronisation = 2e-5\n[[devices]]\nname = "cpu:"\ncount = 2\n'
        '[[links]]\nfrom = "*"\nto = "*"\nbandwidth = 1e9\n'
    )
    assert "synchronisation: 20.0 µs" in situate("cluster", "show", "here.toml").out
    assert "synchronisation" not in situate("cluster", "show", "k80-2").out


def test_show_is_json_without_infinities(situate):
    content = situate("cluster", "show", "identical:2", "--json").json
    assert [device["name"] for device in content["devices"]] == ["d0", "d1"]
    assert content["links"][0]["bandwidth"] is None


def test_show_refuses_an_unknown_name(situate):
    run = situate("cluster", "show", "k80-5")
    assert run.status == 2
    assert run.err.startswith("error: ")


# This machine becomes a cluster file.
def test_discover_writes_a_file_that_reads_back(situate):
    run = situate("cluster", "discover", "--out", "here.toml")
    assert run.status == 0
    assert Cluster.read("here.toml").devices


def test_discover_prints_a_cluster_file(situate):
    Path("here.toml").write_text(situate("cluster", "discover").out)
    assert Cluster.read("here.toml").devices


def test_discover_measures_with_probe(situate, monkeypatch):
    from situate.host import probe

    monkeypatch.setattr(probe, "read_rate", lambda threads: 8.5e9)
    Path("here.toml").write_text(situate("cluster", "discover", "--probe").out)
    assert Cluster.read("here.toml").devices[-1].bandwidth == 1e10


def test_a_model_to_probe_with_needs_the_probe(situate):
    run = situate("cluster", "discover", "--probe-model", "m.gguf")
    assert run.status != 0
    assert run.err == "error: --probe-model: needs --probe\n"


def test_discover_checks_its_output_first(situate):
    run = situate("cluster", "discover", "--out", "no/here.toml")
    assert run.status == 2
    assert "no/here.toml" in run.err


def test_without_a_command_it_says_what_is_missing(situate):
    run = situate("cluster")
    assert run.status == 2
    assert run.err == "error: Missing command: give 'list', 'show NAME' or 'discover'\n"
