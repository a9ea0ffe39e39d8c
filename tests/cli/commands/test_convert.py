"""`situate convert`."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate import zoo
from situate.readers import read
from situate.zoo import loading
from tests.cli.conftest import diamond


# A converted model is the same graph.
@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_what_is_written_reads_back_the_same(situate, model, name):
    assert situate("convert", model, name).status == 0
    assert read(name) == diamond()


def test_only_gz_is_compressed(situate, model):
    situate("convert", model, "out.json")
    situate("convert", model, "out.json.gz")
    assert Path("out.json").read_bytes().startswith(b"{")
    assert Path("out.json.gz").read_bytes().startswith(b"\x1f\x8b")


# No model is lost to a wrong name.
@pytest.mark.parametrize("name", ["out", "out.gz", "out.py"])
def test_other_endings_are_refused(situate, model, name):
    run = situate("convert", model, name)
    assert run.status == 2
    assert f"error: graph {name!r}: must end in .json or .json.gz" in run.err
    assert not Path(name).exists()


def test_the_model_is_not_overwritten(situate, model):
    before = Path(model).read_bytes()
    run = situate("convert", model, model)
    assert run.status == 2
    assert Path(model).read_bytes() == before


def test_any_readable_format_converts(situate):
    Path("g.stg").write_text("1\n0 0 0\n1 5 1 0\n2 0 1 1\n")
    assert situate("convert", "g.stg", "g.json").status == 0
    assert read("g.json").unit == ""


def test_fresh_captures_a_network_of_the_zoo_anew(situate, monkeypatch):
    captured = []
    packaged = zoo.load("cifar_cnn")
    monkeypatch.setattr(loading, "captured", lambda *a: captured.append(a[0]) or packaged)
    situate("convert", "cifar_cnn", "out.json")
    assert captured == []
    situate("convert", "cifar_cnn", "out.json", "--fresh")
    assert captured == ["cifar_cnn"]
