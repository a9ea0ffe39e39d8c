"""A cluster's file is read in the units that it is meant in; each error has a remedy."""

from __future__ import annotations

import re
import tomllib

import msgspec
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.cluster_keys import DEVICE, FILE, LINK, NO_UNIT, check_keys
from situate.errors import ClusterError

TWO = """
name = "two"
[[devices]]
name = "gpu"
count = 2
flops = { float32 = 35.6e12 }
bandwidth = 936e9
launch = 6e-6
[[links]]
from = "gpu*"
to = "gpu*"
bandwidth = 12e9
latency = 20e-6
"""


def refused(content: str, instead: str, message: str) -> None:
    assert content in TWO
    with pytest.raises(ClusterError, match=f"^{re.escape(message)}$"):
        check_keys(tomllib.loads(TWO.replace(content, instead)))


def test_what_the_keys_are_is_what_a_cluster_has():
    check_keys(tomllib.loads(TWO))
    assert DEVICE.keys() - {"count"} == {f.encode_name for f in msgspec.structs.fields(Device)}
    assert LINK.keys() == {f.encode_name for f in msgspec.structs.fields(Link)}
    assert FILE.keys() == Cluster.__dataclass_fields__.keys()


@pytest.mark.parametrize("keys", [FILE, DEVICE, LINK])
def test_every_example_is_a_value_of_its_key(keys):
    for name, key in keys.items():
        assert type(tomllib.loads(f"{name} = {key.example}")[name]) in key.types


@pytest.mark.parametrize(
    ("content", "instead", "message"),
    [
        (
            "936e9",
            "936",
            "devices[0].bandwidth: 936 B/s: bytes a second are meant, such as 936e9 for 936 GB/s",
        ),
        (
            "12e9",
            "12000",
            "links[0].bandwidth: 12000 B/s: bytes a second are meant, such as 12e9 for 12 GB/s",
        ),
        (
            "35.6e12",
            "35.6",
            "devices[0].flops.float32: 35.6 FLOP/s: FLOP a second are meant, such as 35.6e12 for "
            "35.6 TFLOP/s",
        ),
        ("6e-6", "6", "devices[0].launch: 6 s: seconds are meant, such as 6e-6 for 6 us"),
        ("20e-6", "20", "links[0].latency: 20 s: seconds are meant, such as 20e-6 for 20 us"),
    ],
)
def test_a_figure_in_a_data_sheets_unit_is_refused_with_one_in_the_files(content, instead, message):
    refused(content, instead, f"{message}; {NO_UNIT}")


@pytest.mark.parametrize(
    ("content", "instead"),
    [("936e9", "1e6"), ("936e9", "inf"), ("12e9", "1e5"), ("35.6e12", "1e6"), ("6e-6", "0.9")],
)
def test_slow_machines_are_none_of_data_sheets_units(content, instead):
    check_keys(tomllib.loads(TWO.replace(content, instead)))


def test_beside_links_without_bytes_times_may_have_no_unit():
    text = TWO.replace("12e9", "inf").replace("20e-6", "20")
    check_keys(tomllib.loads(text))


def test_rates_of_a_cluster_made_in_python_are_its_own():
    devices = tuple(
        Device(name, flops={"float32": 1.0}, bandwidth=1.0, launch=2.0) for name in "ab"
    )
    assert Cluster("units", devices, (Link("*", "*", 1.0, latency=3.0),)).bandwidth[0, 1] == 1.0


@pytest.mark.parametrize(
    ("content", "instead", "message"),
    [
        ("launch", "lanch", "devices[0]: unknown key 'lanch'; did you mean 'launch'?"),
        ("latency", "latncy", "links[0]: unknown key 'latncy'; did you mean 'latency'?"),
        ("[[links]]", "[[lniks]]", "unknown key 'lniks'; did you mean 'links'?"),
        ('name = "two"', "", 'no name: add name = "two"'),
        ('name = "gpu"\n', "", 'devices[0]: no name: add name = "gpu0"'),
        ("bandwidth = 12e9", "", "links[0]: no bandwidth: add bandwidth = 12e9"),
    ],
)
def test_a_key_that_is_not_there_or_missing_is_named_with_the_remedy(content, instead, message):
    refused(content, instead, message)


@pytest.mark.parametrize(
    ("content", "instead", "message"),
    [
        (
            "12e9",
            '"12 GB/s"',
            "links[0].bandwidth: must be bytes a second, such as 12e9, got '12 GB/s'",
        ),
        ("6e-6", '"5us"', "devices[0].launch: must be seconds, such as 6e-6, got '5us'"),
        (
            "{ float32 = 35.6e12 }",
            "35.6",
            "devices[0].flops: must be FLOP a second by dtype, such as { float32 = 35.6e12 }, got "
            "35.6",
        ),
        (
            "35.6e12",
            '"fast"',
            "devices[0].flops.float32: must be FLOP a second, such as 35.6e12, got 'fast'",
        ),
        (
            "count = 2",
            "count = true",
            "devices[0].count: must be a whole number, such as 2, got True",
        ),
    ],
)
def test_a_value_of_another_type_is_answered_with_an_example(content, instead, message):
    refused(content, instead, message)


def test_entries_begin_with_two_brackets():
    text = 'name = "one"\n[devices]\nname = "gpu"\n'
    with pytest.raises(ClusterError, match=r"^devices: must be entries that begin with \[\[devi"):
        check_keys(tomllib.loads(text))
    with pytest.raises(ClusterError, match=r"^devices\[0\]: must be entries that .*, got 'gpu'$"):
        check_keys({"name": "one", "devices": ["gpu"]})
