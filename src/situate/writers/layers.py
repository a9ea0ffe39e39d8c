"""The layers of a network by its module paths, and where a plan puts each of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from situate.errors import PlanError
from situate.graph import Graph, Op
from situate.problem import Problem
from situate.report.text import printable
from situate.schedule import Schedule
from situate.writers.dependence import dependence, runs_forward

LISTS = ("layers", "layer", "h", "blocks", "block")
"""What networks call the list of their layers."""

_LAYER = re.compile(rf"((?:.*?\.)?(?:{'|'.join(LISTS)}))\.(\d{{1,9}})((?:\..*)?)")


@dataclass(frozen=True)
class Part:
    """A layer, or an outermost module beside the list of layers.

    Attributes:
        path: such as `model.layers.3`.
        device: index of the device that holds most of its bytes, or where it has none, of that
            which runs most of its forward pass.
        split: whether the plan gives some of it to other devices.
    """

    path: str
    device: int
    split: bool


@dataclass(frozen=True)
class Layers:
    """A network as a list of layers and what is around it.

    Attributes:
        path: of the list, such as `model.layers`.
        parts: the layers, by number.
        before, after: the modules beside the list, in order of execution; `after` those that
            depend on a layer, but for those that a layer needs first.
        experts: of every layer with modules called `experts`, by its number, the device that holds
            most of their bytes.
    """

    path: str
    parts: tuple[Part, ...]
    before: tuple[Part, ...]
    after: tuple[Part, ...]
    experts: dict[int, int]

    @property
    def split(self) -> list[str]:
        """Paths of what the plan splits over devices."""
        return [part.path for part in (*self.before, *self.parts, *self.after) if part.split]


@dataclass
class _Use:
    """Bytes held and forward seconds spent by device."""

    held: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, op: Op, device: int, seconds: float) -> None:
        self.held[device] += op.persistent
        if runs_forward(op):
            self.seconds[device] += seconds

    def part(self, path: str) -> Part:
        held = {device: size for device, size in self.held.items() if size}
        used = set(held) | {device for device, seconds in self.seconds.items() if seconds}
        weight: dict[int, float] = {**(held or self.seconds or self.held)}
        return Part(path, max(weight, key=lambda d: (weight[d], -d)), len(used) > 1)


def layers(problem: Problem, schedule: Schedule) -> Layers:
    """The layers that the graph's module paths tell of.

    Raises:
        PlanError: there is no list of layers, there are several, or a layer is missing from it.
    """
    paths = [op.module.replace("/", ".") for op in problem.graph.ops]
    found = [_LAYER.fullmatch(path) for path in paths]
    name = _only_list(problem, {match[1] for match in found if match})
    numbered: dict[int, _Use] = defaultdict(_Use)
    experts: dict[int, _Use] = defaultdict(_Use)
    beside: dict[str, _Use] = defaultdict(_Use)
    for j, (op, match) in enumerate(zip(problem.graph.ops, found, strict=True)):
        device = int(schedule.placement[j])
        use = (op, device, float(problem.seconds[j, device]))
        if match:
            numbered[int(match[2])].add(*use)
            if op.persistent and "experts" in match[3].split("."):
                experts[int(match[2])].add(*use)
        elif outer := _outermost(paths[j], name):
            beside[outer].add(*use)
    _check_complete(name, numbered)
    before, after = _sides(problem.graph, [_outermost(path, name) for path in paths], found)
    return Layers(
        name,
        tuple(numbered[i].part(f"{name}.{i}") for i in range(len(numbered))),
        tuple(beside[path].part(path) for path in before),
        tuple(beside[path].part(path) for path in after),
        {i: use.part("").device for i, use in experts.items()},
    )


def _only_list(problem: Problem, lists: set[str]) -> str:
    graph = problem.graph.name
    if not lists:
        known = ", ".join(f"{name}.N" for name in LISTS)
        raise PlanError(
            f"graph {graph!r} names no layers, which a pipeline is made of: its module paths have "
            f"none of {known}"
        )
    if len(lists) > 1:
        names = ", ".join(printable(name, 60) for name in sorted(lists)[:4])
        raise PlanError(f"graph {graph!r} has {len(lists)} lists of layers ({names}), not one")
    return lists.pop()


def _outermost(path: str, layers_path: str) -> str:
    """The outermost module on the way to `path` that does not hold the layers; empty if all do."""
    parts, holders = path.split("."), layers_path.split(".")
    for depth, part in enumerate(parts):
        if depth >= len(holders) or part != holders[depth]:
            return ".".join(parts[: depth + 1])
    return ""


def _sides(
    graph: Graph, outer: Sequence[str], found: Sequence[re.Match[str] | None]
) -> tuple[list[str], list[str]]:
    """The modules before and after the layers, told by what depends on what: ops without inputs run
    at any time."""
    running = [runs_forward(op) for op in graph.ops]
    layer = [match is not None and runs for match, runs in zip(found, running, strict=True)]
    behind, ahead = dependence(graph, layer)
    ops = [j for j in graph.order if running[j] and not layer[j] and outer[j]]
    first = {outer[j] for j in ops if ahead[j] and not behind[j]}
    after = dict.fromkeys(outer[j] for j in ops if behind[j] and outer[j] not in first)
    before = dict.fromkeys(outer[j] for j in ops if outer[j] not in after)
    return list(before), list(after)


def _check_complete(name: str, numbered: Iterable[int]) -> None:
    present = np.array(sorted(numbered))
    wrong = np.flatnonzero(present != np.arange(len(present)))
    if len(wrong):
        last = int(present[-1])
        raise PlanError(f"list {name!r} has a layer {last}, but no op of layer {int(wrong[0])}")
