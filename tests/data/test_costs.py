"""Cost files come back as they were, and other files are refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from situate.data.costs import Costs, Efficiency, MeasuredDevice, MeasuredLink, Timing
from situate.errors import ReadError, SituateError

CPU = MeasuredDevice(
    "cpu:0",
    "cpu",
    "Xeon (1 thread)",
    1,
    {"float32": 7e10},
    1.1e10,
    4e-6,
    {"aten.relu(f32[8])\x1b</script>": Timing(2e-6, 1e-6, 3e-6, 5)},
    {"elementwise": Efficiency(0.5, 0.25, 1.0, 3, 1.5)},
    {"elementwise": 1.25},
)
COSTS = Costs(
    "here",
    "2026-11-21",
    {"torch": "2.13.0"},
    [CPU, MeasuredDevice("gpu0", "gpu")],
    [MeasuredLink("cpu:0", "gpu0", 1e-5, 1e9)],
    2e-5,
)


def test_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    COSTS.write(tmp_path / "c.json")
    again = Costs.read(tmp_path / "c.json")
    assert again == COSTS
    assert again.hash == COSTS.hash
    assert "</script>" not in (tmp_path / "c.json").read_text()


def test_the_hash_follows_the_seconds_and_not_the_date() -> None:
    replace = msgspec.structs.replace
    slower = replace(CPU, seconds={"aten.relu(f32[8])": Timing(3e-6, 1e-6, 3e-6, 5)})
    assert replace(COSTS, machine="there", date="2027", links=[]).hash == COSTS.hash
    assert replace(COSTS, devices=[slower]).hash != COSTS.hash
    assert replace(COSTS, step=1e-3).hash != COSTS.hash


def _changed(**changes: Any) -> dict[str, Any]:
    return json.loads(msgspec.json.encode(COSTS)) | changes


def _device(**changes: Any) -> dict[str, Any]:
    return _changed(devices=[json.loads(msgspec.json.encode(CPU)) | changes], links=[])


FIT = {"arithmetic": 1, "memory": 1, "launches": 1, "ops": 1, "error": 1}
TIMING = {"median": 1.0, "low": 1.0, "high": 1.0, "count": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "missing required field machine"),
        (_changed(format="situate-plan"), "format: invalid value 'situate-plan'"),
        (_changed(version=2), "version 2; this situate reads version 1"),
        (_changed(extra=1), "unknown field extra"),
        (_changed(synchronisation=-1), "synchronisation: expected float >= 0"),
        (_changed(devices=[{"name": "a"}]), r"devices\[0\]: .*missing required field kind"),
        (_changed(devices=[{"name": "a", "kind": "cpu"}] * 2), "two devices are called 'a'"),
        (_changed(links=[{"from": "a", "to": "b", "latency": 0, "bandwidth": 0}]),
         r"links\[0\].bandwidth: expected float > 0"),
        (_device(seconds={"a": TIMING | {"median": -1}}), "median: expected float >= 0"),
        (_device(seconds={"a": TIMING | {"median": 2e9}}), "median: expected float <= 1000000000"),
        (_device(seconds={"a": TIMING | {"median": "1"}}), "median: expected float, got str"),
        (_device(seconds={"a": TIMING | {"count": 0}}), "count: expected int >= 1"),
        (_device(seconds={"a": TIMING | {"count": 2**64}}), "count: expected int <= 9007199254"),
        (_device(threads=2**64), r"devices\[0\].threads: expected int <= 9007199254740992"),
        (_device(threads=0), r"devices\[0\].threads: expected int >= 1"),
        (_device(efficiency={"matmull": FIT}),
         "unknown op class 'matmull'; did you mean 'matmul'"),
        (_device(flops={"fp32": 1e12}),
         r"devices\[0\].flops: unknown dtype 'fp32'; did you mean 'float32'?"),
        (_device(efficiency=dict.fromkeys("hgfedcba", FIT)), "unknown op class 'a'"),
        (_device(contention={"matmul": 0.5}), "expected float >= 1"),
        (_device(bandwidth=0), "bandwidth: expected float > 0"),
        (_device(workspace={"a": 2**53 + 1}), "workspace.*: expected int <= 9007199254740992"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_named(
    content: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.json").write_text(json.dumps(content))
    with pytest.raises(ReadError, match=f"bad.json: not a cost file: .*{message}") as error:
        Costs.read(tmp_path / "bad.json")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[1]", b'{"format": "situate-costs"', b"[" * 9**5]
)
def test_whatever_bytes_there_are_it_is_an_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(ReadError, match=r"bad\.json: "):
        Costs.read(tmp_path / "bad.json")


def test_a_file_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.data.costs.LIMIT", 1000)
    with pytest.raises(ReadError, match="/dev/zero: not a cost file: holds more than 1000 bytes"):
        Costs.read("/dev/zero")


def test_a_missing_file_and_an_unwritable_one_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"none\.json: no such file"):
        Costs.read(tmp_path / "none.json")
    with pytest.raises(SituateError, match="cannot write"):
        COSTS.write(tmp_path / "none" / "c.json")


def test_what_a_file_leaves_out_slows_nothing_down(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(
        json.dumps(
            {
                "format": "situate-costs",
                "version": 1,
                "machine": "here",
                "date": "today",
                "versions": {},
                "devices": [{"name": "a", "kind": "cpu"}],
            }
        )
    )
    costs = Costs.read(tmp_path / "c.json")
    assert (costs.synchronisation, costs.step) == (0, 0)
    assert (costs.devices[0].launch, costs.devices[0].wall) == (0, 1)
