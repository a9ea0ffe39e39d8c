"""Plans of the network of two branches on this machine, written for commands that run them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from situate.data.cluster import Cluster
from situate.data.cuts import Cuts
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.results.plan import Plan
from situate.solvers import solve
from situate.torch_capture import capture_function

DEVICE = """
[[devices]]
name = "{name}"
kind = "cpu"
threads = {threads}
memory = "1 GiB"
flops = {{ float32 = 5e10 }}
bandwidth = 1e10
launch = 5e-6
"""
LINK = """
[[links]]
from = "*"
to = "*"
bandwidth = 1e10
"""


def write_plan(
    folder: Path,
    model: str = "tests.branches:build",
    method: str = "single",
    threads: tuple[int, int] = (1, 1),
    optimizer: str | None = None,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    cuts: Cuts | None = None,
) -> Plan:
    """Write `pair.toml` and, as `plan.json`, a plan for it."""
    devices = [DEVICE.format(name=f"cpu:{d}", threads=count) for d, count in enumerate(threads)]
    (folder / "pair.toml").write_text('name = "pair"' + "".join(devices) + LINK)
    if slices is None and cuts is None and not recompute:
        graph = _captured(model, optimizer)
    else:
        graph = capture_function(
            model, optimizer=optimizer, cache=False, slices=slices, recompute=recompute, cuts=cuts
        )
    problem = Problem(graph, Cluster.read(folder / "pair.toml"))
    plan = solve(problem, method, evaluations=1).plan
    plan.write(folder / "plan.json")
    return plan


@cache
def _captured(model: str, optimizer: str | None) -> Graph:
    """The graph of a step; the commands capture the step again."""
    return capture_function(model, optimizer=optimizer, cache=False)
