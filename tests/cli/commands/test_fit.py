"""The command `situate fit`."""

from __future__ import annotations


def test_its_options_change_the_memory(situate):
    sizes = "layers=4,hidden=512,heads=8,vocab=50304"
    base = situate("fit", sizes, "--gpu", "24GiB", "--json").json
    longer = situate("fit", sizes, "--gpu", "24GiB", "--seq", "4096", "--json").json
    wider = situate("fit", sizes, "--gpu", "24GiB", "--batch", "2", "--json").json
    assert longer["bytes"] == wider["bytes"] > base["bytes"]


def test_it_needs_a_gpu(situate):
    run = situate("fit", "layers=4,hidden=512,heads=8,vocab=50304")
    assert run.status == 2
    assert "--gpu" in run.err
