"""The layers of a network by its module paths, and their devices in a plan."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.errors import PlanError
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.writers.exported import device_names

LISTS = ("layers", "layer", "h", "blocks", "block")
"""Names that networks give the list of their layers."""

_LAYER = re.compile(rf"((?:.*?\.)?(?:{'|'.join(LISTS)}))\.(\d{{1,9}})((?:\..*)?)", re.DOTALL)


@dataclass(frozen=True)
class Part:
    """A layer, or an outermost module beside the list of layers.

    Attributes:
        path: such as `model.layers.3`.
        device: index of its device, see `layers`.
        split: true if the plan gives a part of it to other devices.
    """

    path: str
    device: int
    split: bool


@dataclass(frozen=True)
class Layers:
    """A network as a list of layers and the modules around it.

    Attributes:
        path: of the list, such as `model.layers`.
        parts: the layers, by number.
        before, after: the modules beside the list, in order of execution. `after` has those that
            depend on a layer, except those that a layer needs first.
        experts: of every layer with modules called `experts`, by its number, the device with most
            of their bytes.
        trunks: of these layers, by number, the device of the rest of each.
    """

    path: str
    parts: tuple[Part, ...]
    before: tuple[Part, ...]
    after: tuple[Part, ...]
    experts: dict[int, int]
    trunks: dict[int, int]

    @property
    def split(self) -> list[str]:
        """Paths of the parts that the plan splits over devices."""
        return [part.path for part in (*self.before, *self.parts, *self.after) if part.split]


@dataclass
class _Use:
    """By device: bytes held; bytes by the devices that need them, so that a CPU's or disk's count
    for the forward pass's device; forward seconds."""

    persistent: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    needed: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, op: Op, device: int, needed: int | None, seconds: float) -> None:
        self.persistent[device] += op.persistent
        if needed is not None:
            self.needed[needed] += op.persistent
        if runs_forward(op):
            self.seconds[device] += seconds

    def device(self, by_bytes: bool) -> int:
        """The device with most bytes held, or needed; forward seconds break ties."""
        size = (self.persistent if by_bytes else self.needed).get
        among = self.persistent.keys() | self.needed.keys()
        # `-d` makes the result independent of the order of a set: of equal devices, the first.
        return max(among, key=lambda d: (size(d, 0), self.seconds.get(d, 0.0), -d))

    def part(self, path: str, by_bytes: bool) -> Part:
        in_use = {
            d for use in (self.persistent, self.seconds) for d, amount in use.items() if amount
        }
        return Part(path, self.device(by_bytes), len(in_use) > 1)


def layers(problem: Problem, schedule: Schedule) -> Layers:
    """The layers in the graph's module paths, and their devices.

    Layers and the modules beside them go to the device with most of their bytes in the plan. Bytes
    on a CPU or a disk, such as optimiser state, are no reason to compute there. They count for the
    device of the forward pass, unless that device could then not hold its parts.

    Raises:
        PlanError: there is no list of layers, there are several, or a layer is missing from it.
    """
    paths = [op.module.replace("/", ".") for op in problem.graph.ops]
    matches = [_LAYER.fullmatch(path) for path in paths]
    name = _only_list(problem, {match[1] for match in matches if match})
    numbered: dict[int, _Use] = defaultdict(_Use)
    experts: dict[int, _Use] = defaultdict(_Use)
    trunks: dict[int, _Use] = defaultdict(_Use)
    beside: dict[str, _Use] = defaultdict(_Use)
    needed = _needed(problem, schedule)
    for j, (op, match) in enumerate(zip(problem.graph.ops, matches, strict=True)):
        device = int(schedule.placement[j])
        use = (op, device, needed.get(j), float(problem.seconds[j, device]))
        if match:
            numbered[int(match[2])].add(*use)
            if "experts" not in match[3].split("."):
                trunks[int(match[2])].add(*use)
            elif op.persistent:
                experts[int(match[2])].add(*use)
        elif outer := _outermost(paths[j], name):
            beside[outer].add(*use)
    _check_complete(name, numbered)
    # Where the forward pass asks too much of a device, the plan's own split of the bytes fits.
    by_bytes = not _fit(problem, (*numbered.values(), *beside.values()))
    before, after = _sides(problem.graph, [_outermost(path, name) for path in paths], matches)
    return Layers(
        name,
        tuple(numbered[i].part(f"{name}.{i}", by_bytes) for i in range(len(numbered))),
        tuple(beside[path].part(path, by_bytes) for path in before),
        tuple(beside[path].part(path, by_bytes) for path in after),
        {i: use.device(by_bytes=True) for i, use in experts.items()},
        {i: trunks[i].device(by_bytes) for i in experts if i in trunks},
    )


def layer_of(op: Op, path: str) -> int | None:
    """The number of an op's layer in the list at `path`; None beside it."""
    match = _LAYER.fullmatch(op.module.replace("/", "."))
    return int(match[2]) if match and match[1] == path else None


def split_layer(path: str) -> tuple[str, int, str] | None:
    """The list of layers on a path, the number of the layer, and the rest; None beside a list."""
    match = _LAYER.fullmatch(path)
    return (match[1], int(match[2]), match[3]) if match else None


def layer_paths(graph: Graph) -> list[str]:
    """Paths of the layers in all lists of layers, in the order of their first op."""
    matches = (_LAYER.fullmatch(op.module) for op in graph.ops)
    return list(dict.fromkeys(f"{match[1]}.{match[2]}" for match in matches if match))


def _needed(problem: Problem, schedule: Schedule) -> dict[int, int]:
    """By op, the device that needs its persistent bytes: an accelerator's own, else the device that
    first reads them in the forward pass."""
    ops, placement = problem.graph.ops, schedule.placement.tolist()
    numbers = device_names(problem.cluster)
    needed = {
        j: device
        for j, (op, device) in enumerate(zip(ops, placement, strict=True))
        if isinstance(numbers[device], int) or runs_forward(op)
    }
    for producer, consumer in problem.graph.edges():
        if runs_forward(ops[consumer]):
            needed.setdefault(producer, placement[consumer])
    return needed


def _fit(problem: Problem, uses: Iterable[_Use]) -> bool:
    """True if every device can hold the parts that need it."""
    room = problem.capacity.tolist()
    for use in uses:
        room[use.device(by_bytes=False)] -= sum(use.persistent.values())
    return all(bytes_left >= 0 for bytes_left in room)


def _only_list(problem: Problem, lists: set[str]) -> str:
    graph = problem.graph.name
    if not lists:
        candidates = ", ".join(f"{name}.N" for name in LISTS)
        raise PlanError(
            f"graph {graph!r} names no layers, which a pipeline is made of: its module paths have "
            f"none of {candidates}"
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
    graph: Graph, outer: Sequence[str], matches: Sequence[re.Match[str] | None]
) -> tuple[list[str], list[str]]:
    """The modules before and after the layers, by their dependence on layers; ops without inputs
    may run at any time and do not count."""
    running = [runs_forward(op) for op in graph.ops]
    layer = [match is not None and runs for match, runs in zip(matches, running, strict=True)]
    # (n,) each: ops that depend on a layer, and ops that a layer depends on.
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


# The part of a forward pass that depends on chosen ops, and the part that they depend on.
def runs_forward(op: Op) -> bool:
    """True if the op computes in the forward pass."""
    return op.kind not in ("parameter", "buffer") and op.phase in ("", "forward")


def dependence(graph: Graph, selection: Sequence[bool]) -> tuple[list[bool], list[bool]]:
    """For every op, whether it depends on a chosen op, and whether a chosen op depends on it."""
    n = len(graph.ops)
    consumers: list[list[int]] = [[] for _ in range(n)]
    for producer, consumer in graph.edges():
        if runs_forward(graph.ops[consumer]):
            consumers[producer].append(consumer)
    behind, ahead = [False] * n, [False] * n
    for op in graph.order:
        if behind[op] or selection[op]:
            for consumer in consumers[op]:
                behind[consumer] = True
    # Consumers come later in the order, so one pass each way reaches the fixed point.
    for op in reversed(graph.order):
        ahead[op] = any(ahead[consumer] or selection[consumer] for consumer in consumers[op])
    return behind, ahead
