"""The machines of published measurements, by the words that describe them."""

from __future__ import annotations

import re

from situate.data.cluster import Cluster, Device, Link

HOSTS: tuple[tuple[str, float, int, float], ...] = (
    ("Xeon 6980P", 844, 128, 26e12),
    ("EPYC 9355", 576, 32, 7.2e12),
    ("EPYC 9175F", 576, 16, 4.3e12),
    ("EPYC 7713", 204, 64, 4.1e12),
    ("W5-3425", 307, 12, 2.5e12),
    ("9950X", 89.6, 16, 4.4e12),
    ("Threadripper PRO 24c", 307, 24, 3.2e12),
    ("E5-1660v4", 76.8, 8, 0.8e12),
    ("i7-14700KF", 89.6, 20, 2.2e12),
    ("DDR4-3200 2ch", 51.2, 16, 1.7e12),
)
"""A pattern, nominal GB/s of memory, cores, and nominal float32 operations/s of a CPU."""

LINK, LINK_LATENCY = 25e9, 10e-6
"""Bytes/s and seconds of a slot whose width is not published: PCIe 4.0 x16."""


def card_names(devices: str) -> list[str]:
    """The models of a rig's cards: `2x RTX 3090 + RTX A4000` has three."""
    names = []
    for part in re.split(r"\s*\+\s*", devices.split(";")[0]):
        match = re.match(r"(?:(\d+)x )?(.*)", part.strip())
        if match and re.search(r"RTX|GTX|Tesla|P40|V100|RX |R9700|Arc|A100|MI\d", match[2]):
            names += [match[2]] * int(match[1] or 1)
    return names


def _host(devices: str) -> tuple[str, float, int, float] | None:
    return next((row for row in HOSTS if re.search(row[0], devices)), None)


def _host_of_others(devices: str, about: tuple[str, ...]) -> tuple[str, float, int, float] | None:
    """The host that all other rows of a source with the same cards have."""
    cards = devices.split(";")[0]
    alike = [text for text in about if text.split(";")[0] == cards or cards == "CPU only"]
    hosts = {host for text in alike for host in [_host(text)] if host}
    return hosts.pop() if len(hosts) == 1 else None


def rig_cluster(devices: str, about: tuple[str, ...]) -> tuple[Cluster, str]:
    """The cluster of a rig, and the name of its CPU; empty if none is published.

    Args:
        devices: of the row.
        about: the devices of all rows of the source.
    """
    host = _host(devices) or _host_of_others(devices, about)
    name, bandwidth, cores, flops = host or ("", 80, 12, 1.5e12)
    slow = re.search(r"PCIe ([23])\.0 x(\d+)", devices)
    rate = {"2": 0.4e9, "3": 0.8e9}[slow[1]] * int(slow[2]) if slow else LINK
    cards = [Device(f"gpu{i}", model=name) for i, name in enumerate(card_names(devices))]
    cpu = Device(
        "cpu", kind="cpu", bandwidth=bandwidth * 1e9, threads=cores, flops={"float32": flops}
    )
    links = (Link("*", "*", rate, LINK_LATENCY),)
    return Cluster("rig", (*cards, cpu), links), name
