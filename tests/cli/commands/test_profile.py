"""`situate profile`: its files, its table, and errors before it measures."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

from situate.data.cluster import Cluster, Device, Link
from situate.data.costs import Costs, Efficiency, MeasuredDevice, MeasuredLink, Timing
from situate.data.graph import Graph, Op
from situate.host import discover
from situate.profiling.profile import Profile

SECONDS = {"mm": Timing(2.0, 1.0, 3.0, 4)}
CPU = MeasuredDevice(
    "cpu:0", "cpu", threads=1, seconds=SECONDS, contention={"matmul": 1.5},
    efficiency={"matmul": Efficiency(0.5, 0.25, 2.0, 1, 1.2)},
)  # fmt: skip
LINKS = [MeasuredLink("cpu:0", "cpu:1", 0.0, 2e9), MeasuredLink("cpu:1", "cpu:0", 0.0, 2e9)]
COSTS = Costs("vm", "2026-11-21", {}, [CPU], LINKS, 1e-5)
GRAPH = Graph("\x1b[31mnet", (Op("a", "aten.mm", signature="mm"), Op("b", "aten.mm")))
PAIR = Cluster("pair", tuple(Device(f"cpu:{i}", "cpu") for i in range(2)), (Link("*", "*", 1e9),))


@pytest.fixture(autouse=True)
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Cluster, str | None]]:
    """The requests to measure, which return without measuring."""
    calls = []

    def profile(*arguments):
        calls.append(arguments)
        return Profile(COSTS, GRAPH)

    monkeypatch.setattr("situate.profiling.profile.profile", profile)
    monkeypatch.setattr(discover, "discover", lambda cpus=None: PAIR)
    return calls


# Measurements are written and shown.
def test_costs_and_cluster_are_written_and_read_back(situate) -> None:
    run = situate("profile", "net", "--cpus", 2, "--out", "c.json", "--cluster-out", "here.toml")
    assert run.status == 0
    assert Costs.read("c.json") == COSTS
    assert Cluster.read("here.toml").bandwidth[0, 1] == 2e9
    assert "wrote c.json" in run.err
    assert "wrote here.toml" in run.err


def test_a_full_disk_does_not_take_the_answer(situate) -> None:
    run = situate("profile", "net", "--out", "/dev/full", "--json")
    assert (run.status, run.json["graph"]) == (2, GRAPH.name)


def test_a_busy_machine_is_a_warning(situate, monkeypatch) -> None:
    assert "warning" not in situate("profile", "net", "--out", "c.json").err
    busy = msgspec.structs.replace(COSTS, devices=[msgspec.structs.replace(CPU, wall=2.5)])
    profile = Profile(busy, GRAPH)
    monkeypatch.setattr("situate.profiling.profile.profile", lambda *_: profile)
    assert "made its steps 2.5 times as long" in situate("profile", "net", "--out", "c.json").err


def test_text_shows_classes_and_links(situate) -> None:
    run = situate("profile", "net", "--out", "c.json")
    for text in ("cpu:0: a step takes 2.00 s", "matmul", "50.0 %", "1.50x", "2.00 G"):
        assert text in run.out


def test_json_has_seconds_of_a_step_by_device_and_class(situate) -> None:
    run = situate("profile", "net", "--out", "c.json", "--json")
    assert run.json["devices"] == {"cpu:0": {"matmul": 2.0}}
    assert run.json["hash"] == GRAPH.hash


def test_a_cluster_file_and_an_optimizer_are_passed_on(situate, requests) -> None:
    Path("two.toml").write_text(discover.to_toml(PAIR))
    situate("profile", "net", "--cluster", "two.toml", "--optimizer", "adam", "--out", "c.json")
    assert requests == [("net", PAIR, "adam", None, None)]


# Nothing is measured for a command that cannot succeed.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cluster", "k80-4", "--cpus", "2"], "leave --cluster out"),
        (["--cpus", "0"], "greater than or equal to 1"),
        (["--cluster-out", "no/such/folder.toml"], "no/such/folder.toml"),
        (["--cluster-out", "c.json"], "used twice"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(
    situate, requests, arguments, message
) -> None:
    run = situate("profile", "net", "--out", "c.json", *arguments)
    assert run.status == 2
    assert message in run.err
    assert requests == []
    assert not Path("c.json").exists()


def test_without_out_there_is_nothing_to_do(situate, requests) -> None:
    assert situate("profile", "net").status == 2
    assert requests == []
