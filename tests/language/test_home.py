"""Homes: processors of a cluster, with effective speeds."""

from __future__ import annotations

import math

import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.errors import ClusterError
from situate.language.home import CONTEXT_BYTES, home_of

LINKS = (Link("*", "*", 25e9, 1e-5),)
CPU = Device("cpu", kind="cpu", memory=64 << 30, bandwidth=80e9, threads=8)


def cluster(*devices: Device) -> Cluster:
    return Cluster("mine", devices, LINKS)


def test_the_host_is_last_wherever_the_file_has_it() -> None:
    home = home_of(cluster(CPU, Device("a", model="RTX 3090"), Device("b", model="RTX 5090")))
    assert [p.name for p in home.processors] == ["a", "b", "cpu"]
    assert home.host.cores == 8
    assert math.isinf(home.bandwidth[0][0])
    assert home.bandwidth[0][2] == 25e9


def test_a_card_by_its_name_has_memory_bandwidth_and_flops() -> None:
    card = home_of(cluster(Device("gpu", model="NVIDIA GeForce RTX 3090"), CPU)).accelerators[0]
    assert card.memory == 24 << 30
    assert 0.5 * 936e9 < card.bandwidth < 936e9
    assert 0.1 * 284e12 < card.flops < 284e12
    assert card.context == CONTEXT_BYTES


def test_rates_of_the_file_count_more_than_those_of_the_card() -> None:
    slow = Device("gpu", model="RTX 3090", bandwidth=100e9, flops={"int8": 1e12}, memory=1 << 30)
    card = home_of(cluster(slow, CPU)).accelerators[0]
    assert card.bandwidth < 100e9
    assert card.flops < 1e12
    assert card.memory == 1 << 30


def test_float_rates_of_a_known_card_do_not_stand_for_its_8_bit_products() -> None:
    named = Device("gpu", model="RTX 3090")
    floats = Device("gpu", model="RTX 3090", flops={"float32": 35.6e12, "float16": 71e12})
    rates = [home_of(cluster(device, CPU)).accelerators[0] for device in (named, floats)]
    assert rates[0].flops == rates[1].flops
    assert rates[0].attention == rates[1].attention


def test_an_unknown_card_multiplies_8_bit_numbers_twice_as_fast_as_16_bit_ones() -> None:
    abacus = Device("gpu", model="abacus", bandwidth=1e12, flops={"float32": 5e12})
    rates = [
        home_of(cluster(device, CPU)).accelerators[0].flops
        for device in (
            Device("gpu", model="abacus", bandwidth=1e12),
            abacus,
            Device("gpu", model="abacus", bandwidth=1e12, flops={"float16": 10e12}),
            Device("gpu", model="abacus", bandwidth=1e12, flops={"int8": 20e12}),
        )
    ]
    assert rates[0] == rates[1]
    assert rates[2] == rates[3] < rates[0]


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ((Device("gpu", model="RTX 3090"),), "one device of kind 'cpu'.*it has 0"),
        ((CPU, Device("other", kind="cpu", bandwidth=1e9)), "it has 2"),
        ((CPU, Device("gpu", model="abacus")), "'gpu': has no bandwidth"),
        ((Device("cpu", kind="cpu"),), "'cpu': has no bandwidth"),
    ],
)
def test_bad_homes_are_refused_in_one_line(devices: tuple[Device, ...], message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        home_of(cluster(*devices))


# Names in llama.cpp: by the maker, or by the kind that the file gives.
@pytest.mark.parametrize(
    ("devices", "names"),
    [
        ([{"model": "RTX 3090"}, {"model": "RTX 4090"}], ("CUDA0", "CUDA1")),
        ([{"model": "RX 7900 XTX"}, {"model": "MI50"}], ("ROCm0", "ROCm1")),
        ([{"model": "Arc A770"}], ("SYCL0",)),
        ([{"model": "RX 9999", "bandwidth": 1e11}], ("ROCm0",)),
        ([{"model": "RTX 3090"}, {"model": "RX 7900 XTX"}], ("Vulkan0", "Vulkan1")),
        ([{"model": "RX 7900 XTX", "kind": "vulkan"}], ("Vulkan0",)),
        (
            [{"model": "RX 6800", "kind": "rocm"}, {"model": "RTX 3090"}, {"model": "RX 6800"}],
            ("ROCm0", "CUDA0", "ROCm1"),
        ),
    ],
)
def test_gpus_have_the_names_of_their_backends(devices, names) -> None:
    gpus = [Device(f"gpu{i}", **values) for i, values in enumerate(devices)]
    assert home_of(cluster(*gpus, CPU)).device_names == names
