"""Formats are told from content."""

from __future__ import annotations

import pytest

from situate.errors import ReadError
from situate.files import strict_json
from situate.files.strict_json import top_level
from situate.readers.recognise import READERS, recognise
from tests.readers.samples import SAMPLES


@pytest.mark.parametrize("name", READERS)
def test_every_format_is_recognised_by_itself_alone(name):
    data, keys = SAMPLES[name], top_level(SAMPLES[name])
    takers = [other for other, reader in READERS.items() if reader.recognises(data, keys)]
    assert takers == [name]
    assert recognise(SAMPLES[name]) == name


@pytest.mark.parametrize("name", ["stg", "doppler", "pipedream", "situate", "dnn-partitioning"])
def test_line_ends_of_windows_are_no_matter(name):
    data = SAMPLES[name].replace(b"\n", b"\r\n")
    assert recognise(data) == name
    assert READERS[name].read(data, "g") == READERS[name].read(SAMPLES[name], "g")


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b"\x00" * 100,
        b"\x89PNG\r\n\x1a\n" + bytes(50),
        b"PK\x03\x04" + bytes(50),
        b'{"nodes": []}',
        b"[]",
        b"\xff\xfe{\x00}\x00",
        b'\n\x07\n\x01a\x12\x02op"\x03\x08\x9b\x01',
        b"\n\x07\n\x01a\x12\x02op\n\x0a\n\x01b\x12\x02op\x1a\x01a",
    ],
    ids=[
        "text",
        "zeros",
        "png",
        "zip",
        "other json",
        "list",
        "utf-16",
        "GraphDef",
        "GraphDef without a version",
    ],
)
def test_what_no_reader_knows_lists_the_formats(data):
    with pytest.raises(ReadError, match="in no format that situate reads; these are situate, dnn-"):
        recognise(data)


@pytest.mark.parametrize(
    "data", [b"# " * 30_000, b"#\n" * 30_000, b" -- a" * 800, b" " * 60_000, b"1, " * 20_000]
)
def test_no_text_makes_recognition_slow(data):
    with pytest.raises(ReadError, match="in no format"):
        recognise(data)


def test_blanks_are_not_walked_as_the_fields_of_a_protocol_buffer():
    """They would be 25 million."""
    with pytest.raises(ReadError, match="in no format"):
        recognise(b" " * 50_000_000)


def test_json_is_parsed_once_however_many_formats_it_could_be(monkeypatch):
    parsed = []
    decode = strict_json.decode
    monkeypatch.setattr(
        strict_json,
        "decode",
        lambda *arguments, **how: parsed.append(arguments) or decode(*arguments, **how),
    )
    assert recognise(SAMPLES["chrome-trace"]) == "chrome-trace"
    assert len(parsed) == 1


def test_json_that_is_broken_says_where():
    with pytest.raises(ReadError, match="not valid JSON"):
        recognise(b'{"format": "situate-graph", ')


def test_a_plan_is_told_from_a_model():
    with pytest.raises(
        ReadError, match=r"is a plan, not a model: give it to situate explain.* verify"
    ):
        recognise(b'{\n "format": "situate-plan",\n "graph": "g"\n}')
