"""Placements survive their bytes."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from situate.study.packing import Packing


@pytest.mark.parametrize("devices", [1, 2, 5, 256, 257, 60_000])
def test_what_is_unpacked_is_what_was_packed(devices: int) -> None:
    placements = np.random.default_rng(0).integers(0, devices, (3, 50)).astype(np.int32)
    placements[0, 0] = devices - 1
    packing = Packing(50, devices)
    for placement, packed in zip(placements, packing.pack(placements), strict=True):
        assert packing.unpack(packed).dtype == np.int32
        assert np.array_equal(packing.unpack(packed), placement)


def test_groups_that_lie_together_take_few_bytes() -> None:
    placements = np.repeat(np.random.default_rng(0).integers(0, 4, (1, 30)), 1000, axis=1)
    assert len(Packing(30_000, 4).pack(placements.astype(np.int32))[0]) < 1000


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"no zlib",
        zlib.compress(bytes(9)),
        zlib.compress(bytes(11)),
        zlib.compress(bytes(10))[:-6],
        zlib.compress(bytes(10**8)),
        zlib.compress(bytes([3] * 10)),
    ],
    ids=["nothing", "other", "short", "long", "cut", "bomb", "device"],
)
def test_bytes_of_no_placement_are_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Packing(10, 3).unpack(packed)


def test_a_header_without_numbers_has_no_packing() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        Packing.of({"ops": "ten", "devices": "2"})


@pytest.mark.parametrize(("ops", "devices"), [(1, 1), (2**31 - 1, 2**16)])
def test_a_header_says_how_many_ops_and_devices_there_are(ops: int, devices: int) -> None:
    assert Packing.of({"ops": str(ops), "devices": str(devices)}) == Packing(ops, devices)


@pytest.mark.parametrize(("ops", "devices"), [(0, 1), (1, 0), (-1, 1), (2**31, 1), (1, 2**16 + 1)])
def test_a_header_of_what_no_study_has_has_no_packing(ops: int, devices: int) -> None:
    with pytest.raises(ValueError, match=f"no study has {ops} ops on {devices} devices"):
        Packing.of({"ops": str(ops), "devices": str(devices)})
