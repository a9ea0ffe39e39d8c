"""Where whole modules go, so that a model which is split between them still runs.

accelerate brings a module's arguments to the device of the module and leaves its results there.
What a module does itself with the results of others, such as adding a residual, needs all of them
on one device; so does a module that reads the parameters of another, such as a tied one. The
model's own inputs are brought to the first accelerator of the map, and what a module makes without
any of that, such as a mask, may be on any device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from situate.graph import Op
from situate.problem import Problem
from situate.schedule import Schedule
from situate.writers.places import places

INPUTS = "<inputs>"
"""In place of a module's path: where the model's own inputs are."""

Weight = dict[int, float]
"""Bytes or seconds by device."""


def homes(problem: Problem, schedule: Schedule) -> dict[str, int]:
    """Device index by module path: of all modules with parameters, and of all without modules in
    them that take part in the forward pass.

    A module goes where the plan runs most of its forward pass: what only lies on another device,
    such as optimiser state, is no reason to compute there. Where a device could then not hold its
    parameters, all go where the plan holds most bytes of theirs. Modules whose results could not
    be combined go together.
    """
    found = _Homes(problem, schedule, by_bytes=False).settled()
    if _held(problem, found):
        return found
    return _Homes(problem, schedule, by_bytes=True).settled()


def _held(problem: Problem, found: dict[str, int]) -> bool:
    """Whether every device holds what the modules that go there hold for the whole step."""
    room = problem.capacity.tolist()
    for op in problem.graph.ops:
        if op.persistent:
            room[found[op.module]] -= op.persistent
    return all(left >= 0 for left in room)


class _Homes:
    """Homes in the making: paths, joined where they must share a device."""

    def __init__(self, problem: Problem, schedule: Schedule, by_bytes: bool) -> None:
        self.by_bytes = by_bytes
        self.ops, self.order = problem.graph.ops, problem.graph.order
        self.leader: dict[str, str] = {}
        self.held: dict[str, Weight] = defaultdict(lambda: defaultdict(float))
        self.seconds: dict[str, Weight] = defaultdict(lambda: defaultdict(float))
        self.inputs: list[list[int]] = [[] for _ in self.ops]
        for tensor in problem.graph.tensors:
            for consumer in tensor.consumers:
                self.inputs[consumer].append(tensor.producer)
        taking_part = [op for op in self.ops if op.persistent or runs(op)]
        inner = {path for op in taking_part for path in parents(op.module)}
        for j, device in enumerate(schedule.placement.tolist()):
            op = self.ops[j]
            if op.persistent:
                self.held[op.module][device] += op.persistent
            if op.persistent or (op.module not in inner and op.module and runs(op)):
                self.leader.setdefault(op.module, op.module)
            if op.module in self.leader and runs(op):
                self.seconds[op.module][device] += float(problem.seconds[j, device])
        self.inside = self._inside()
        named = enumerate(places(problem.cluster))
        self.accelerators = {device for device, place in named if isinstance(place, int)}
        if "" not in self.leader:
            self.leader[INPUTS] = INPUTS
        self.main = self._main()

    def settled(self) -> dict[str, int]:
        """Join until every op finds what it reads on one device."""
        joined = True
        while joined:
            joined = self._pass()
        return {path: self.device(path) for path in self.leader if path != INPUTS}

    def device(self, path: str) -> int:
        """Where a path and all that are joined with it go. With the model's inputs that is the
        first accelerator of the map, unless they wait elsewhere to be computed there."""
        most = self._most(path)
        if most is None:
            return self.main
        beside = INPUTS in self.leader and self._first(path) == self._first(INPUTS)
        return self.main if beside and most in self.accelerators else most

    def _most(self, path: str) -> int | None:
        """The device that most of that is on; None of inputs that nothing is joined with."""
        first = self._first(path)
        seconds, held = self.seconds[first], self.held[first]
        one, other = (held, seconds) if self.by_bytes else (seconds, held)
        among = one.keys() | other.keys()
        return max(among, key=lambda d: (one.get(d, 0.0), other.get(d, 0.0), -d), default=None)

    def _main(self) -> int:
        """The first accelerator that any module is on."""
        used = {most for path in self.leader if (most := self._most(path)) is not None}
        return min(used & self.accelerators, default=0)

    def _first(self, path: str) -> str:
        while self.leader[path] != path:
            path = self.leader[path]
        return path

    def _inside(self) -> list[bool]:
        """Whether what an op makes goes into a module: what follows the last one is the loss."""
        found = [bool(op.module) for op in self.ops]
        for j in reversed(self.order):
            if found[j] and runs(self.ops[j]):
                for source in self.inputs[j]:
                    found[source] = True
        return found

    def _pass(self) -> bool:
        """Follow the forward pass once; whether anything had to be joined."""
        at: list[str | None] = [None] * len(self.ops)
        made = [op.module for op in self.ops]
        joined = False
        self.main = self._main()
        for j in self.order:
            op = self.ops[j]
            if op.kind in ("parameter", "buffer"):
                at[j] = self._home(op.module)
            elif op.kind == "input":
                at[j] = INPUTS if INPUTS in self.leader else None
            elif runs(op) and self.inside[j]:
                here = self._home(op.module)
                paths = [path for k in self.inputs[j] if (path := self._met(k, at[k], here))]
                at[j] = here if here is not None else next(iter(paths), None)
                loose = (made[k] for k in self.inputs[j] if at[k] is None)
                strays = [path for path in loose if not _within(path, op.module)]
                made[j] = next(iter(strays), op.module)
                joined |= self._agree(op.module, here, paths, bool(strays))
        return joined

    def _home(self, module: str) -> str | None:
        """The innermost module with a home that holds `module`."""
        return next((p for p in (module, *reversed(parents(module))) if p in self.leader), None)

    def _met(self, source: int, at: str | None, here: str | None) -> str | None:
        """Where an op in `here` finds what `source` made; None where it is brought to it."""
        op = self.ops[source]
        if op.kind == "buffer" or (op.kind != "parameter" and here is not None):
            return at if here is not None and at is not None and below(at, here) else None
        return at

    def _agree(self, module: str, here: str | None, paths: list[str], strays: bool) -> bool:
        """See to it that `paths`, and `here`, are on one device; whether they were not. What comes
        into a module from who knows where (`strays`) is brought to it only if it goes whole."""
        among = paths if here is None else [here, *paths]
        strays = strays and here is None and any(path != INPUTS for path in paths)
        if len({self.device(path) for path in among}) <= 1 and not strays:
            return False
        if here is None and (strays or not all(below(path, module) for path in among)):
            self.leader[module] = module
            among = [path for path in self.leader if path == module or below(path, module)]
        self._join(among)
        return True

    def _join(self, paths: Iterable[str]) -> None:
        first, *others = dict.fromkeys(self._first(path) for path in paths)
        for other in others:
            self.leader[other] = first
            for weights in (self.held, self.seconds):
                for device, weight in weights[other].items():
                    weights[first][device] += weight


def runs(op: Op) -> bool:
    """Whether an op is part of the forward pass."""
    return op.phase in ("", "forward") and op.kind not in ("parameter", "buffer", "input")


def parents(module: str) -> list[str]:
    """`""`, `a` for `a.b`: from the outermost."""
    parts = module.split(".") if module else []
    return [".".join(parts[:i]) for i in range(len(parts))]


def _within(path: str, module: str) -> bool:
    return path == module or below(path, module)


def below(path: str, module: str) -> bool:
    """Whether `path` is inside of `module`."""
    return path != module and (not module or path.startswith(f"{module}."))
