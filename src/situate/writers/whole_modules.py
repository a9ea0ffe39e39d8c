"""Groups of modules that must share a device, so that a split model still runs.

accelerate moves a module's arguments to the device of the module and leaves its results there. A
module's own ops, such as a residual addition, need the results of its submodules on one device. So
does a module that reads another module's parameters, such as a tied one. A split module's own
parameters have entries of their own in the map. The outermost module's own parameters and the
model's inputs go to the map's first accelerator. Tensors that a module creates without inputs, such
as a mask, may be on any device.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

from situate.data.graph import Graph, Op

Place = TypeVar("Place", bound=Hashable)
"""A place of a map, or a device."""

INPUTS = "<inputs>"
"""A key in place of a path, for the device of the model's own inputs."""

OUTSIDE = "loss/"
"""Prefix of the names of captured ops that are in no module."""

SMALL_MODULE_DIVISOR = 4
"""Divisor of all bytes: a module of at most that share goes whole if it has own parameters."""


class Modules:
    """The modules of a graph, as accelerate's hooks see them.

    Attributes:
        unit: the path in a map that places each op's parameters. It is the module if that has no
            submodules; otherwise the parameter or buffer itself; None for other ops.
        paths: all these paths and `INPUTS`, in the order of the ops.
        bytes_below: bytes in a module and below it, by path.
        holders: modules with submodules and own parameters.
        own: paths of these own parameters.
        root: paths of the outermost module's own parameters.
    """

    def __init__(self, graph: Graph) -> None:
        self.ops, self.order = graph.ops, graph.order
        self.inputs: list[list[int]] = [[] for _ in self.ops]
        for tensor in graph.tensors:
            for consumer in tensor.consumers:
                self.inputs[consumer].append(tensor.producer)
        taking_part = [op for op in self.ops if op.persistent or runs(op)]
        self._captured = any(op.kind == "parameter" for op in self.ops)
        self._inner = {path for op in taking_part for path in parents(op.module)}
        self.unit = [self._unit(op) for op in self.ops]
        self.paths = list(dict.fromkeys(path for path in self.unit if path is not None))
        units = list(zip(self.unit, self.ops, strict=True))
        self.holders = {op.module for path, op in units if op.persistent and path != op.module}
        self.own = {path for path, op in units if path is not None and path != op.module}
        self.root = {path for path, op in units if path and not op.module}
        self.bytes_below: Counter[str] = Counter()
        for op in self.ops:
            for path in (*parents(op.module), op.module) if op.persistent else ():
                self.bytes_below[path] += op.persistent
        if "" not in self.paths:
            self.paths.append(INPUTS)

    def _unit(self, op: Op) -> str | None:
        if op.module not in self._inner:
            return op.module if op.persistent or (op.module and runs(op)) else None
        if op.kind not in ("parameter", "buffer"):
            # A graph without parameter ops keeps bytes on ops that compute, and their only path is
            # their module's.
            return op.module if op.persistent and not self._captured else None
        return op.name if op.persistent else None

    @cached_property
    def inside(self) -> list[bool]:
        """For every op, whether its result goes into a module that has a device of its own."""
        paths = set(self.paths)
        is_inside = [op.module in paths for op in self.ops]
        for j in reversed(self.order):
            if is_inside[j] and runs(self.ops[j]):
                for source in self.inputs[j]:
                    is_inside[source] = True
        return is_inside


class Groups:
    """Groups of paths that must share a device, built step by step.

    Args:
        largest: bytes of the largest module that goes whole, if it has own parameters or combines
            its arguments with results of its submodules. Of a larger module, only the parts that
            meet are in one group.
        with_inputs: true if the model's results join the group of inputs, such as labels, that they
            meet; otherwise the model has to move these inputs.
    """

    def __init__(self, modules: Modules, largest: int, with_inputs: bool) -> None:
        self.modules, self.largest, self.with_inputs = modules, largest, with_inputs
        self._leader = {path: path for path in modules.paths}
        self._innermost_of: dict[str, str | None] = {}
        self.moves_inputs = False
        """True if the model has to bring inputs to its results."""
        self.loose = False
        """True if a larger module receives a tensor of unknown origin, such as a mask."""
        if INPUTS in self._leader:
            self._join([INPUTS, *sorted(modules.root)])
        for module in sorted(modules.holders):
            if (
                self._may_go_whole(module)
                and modules.bytes_below[module] <= modules.bytes_below[""] // SMALL_MODULE_DIVISOR
            ):
                self._join(self._whole(module))
        # Each join may bring new results together, so passes repeat until one joins nothing.
        while self._pass():
            pass

    def __iter__(self) -> Iterator[str]:
        return iter(self._leader)

    def first(self, path: str) -> str:
        """The path that stands for the group of this one."""
        while self._leader[path] != path:
            path = self._leader[path]
        return path

    def innermost(self, module: str) -> str | None:
        """The innermost module with a device of its own that holds `module`."""
        if module not in self._innermost_of:
            paths = (module, *reversed(parents(module)))
            self._innermost_of[module] = next(
                (path for path in paths if path in self._leader), None
            )
        return self._innermost_of[module]

    def _pass(self) -> bool:
        """Follow the forward pass once; whether anything had to be joined."""
        self.loose = False
        ops, inputs, inside = self.modules.ops, self.modules.inputs, self.modules.inside
        at: list[str | None] = [None] * len(ops)
        paths_of_ops = [op.module for op in ops]
        has_changed = False
        for j in self.modules.order:
            op = ops[j]
            if op.kind in ("parameter", "buffer"):
                at[j] = self.modules.unit[j]
            elif op.kind == "input":
                at[j] = INPUTS if INPUTS in self._leader else None
            elif runs(op) and not is_outside(op):
                here = self.innermost(op.module)
                paths = [path for k in inputs[j] if (path := self._met(k, at[k], here))]
                paths = paths if inside[j] else self._results(paths)
                at[j] = here if here is not None else next(iter(paths), None)
                loose = (paths_of_ops[k] for k in inputs[j] if at[k] is None)
                strays = [path for path in loose if not _within(path, op.module)]
                paths_of_ops[j] = next(iter(strays), op.module)
                has_changed |= self._agree(op.module, here, paths, bool(strays))
        return has_changed

    def _met(self, source: int, at: str | None, here: str | None) -> str | None:
        """The path on whose device an op in `here` finds the output of `source`; None if accelerate
        moves it."""
        if here is None or at is None or self.modules.ops[source].kind == "parameter":
            return at
        return at if below(at, here) else None

    def _results(self, paths: list[str]) -> list[str]:
        """Paths behind the last module, without the inputs that the model moves there."""
        others = [path for path in paths if path != INPUTS]
        if self.with_inputs or not others or len(others) == len(paths):
            return paths
        self.moves_inputs = True
        return others

    def _agree(self, module: str, here: str | None, paths: list[str], strays: bool) -> bool:
        """Join `paths` and `here` in one group; return true if they were not.

        accelerate moves tensors of unknown origin (`strays`) to a module only if it goes whole.
        """
        among = paths if here is None else [here, *paths]
        strays = strays and here is None and any(path != INPUTS for path in paths)
        apart = len({self.first(path) for path in among}) > 1
        # True if the module receives tensors that no module within it produced.
        handed = strays or not all(below(path, module) for path in among)
        whole = here is None and handed and self._may_go_whole(module)
        self.loose |= strays and not whole
        if not (apart or (strays and whole)):
            return False
        self._join(self._whole(module) if whole else among)
        return True

    def _may_go_whole(self, module: str) -> bool:
        return module != "" and self.modules.bytes_below[module] <= self.largest

    def _whole(self, module: str) -> list[str]:
        """Give a module a device of its own; all paths that share it."""
        self._leader[module] = module
        self._innermost_of.clear()
        return [path for path in self._leader if _within(path, module)]

    def _join(self, paths: Iterable[str]) -> None:
        first, *others = dict.fromkeys(self.first(path) for path in paths)
        for other in others:
            self._leader[other] = first


def runs(op: Op) -> bool:
    """True if an op is part of the forward pass."""
    return op.phase in ("", "forward") and op.kind not in ("parameter", "buffer", "input")


def is_outside(op: Op) -> bool:
    """True if an op is in no module, not even the outermost: the loss of the step."""
    return not op.module and op.name.startswith(OUTSIDE)


def parents(module: str) -> list[str]:
    """`""`, `a` for `a.b`: from the outermost."""
    parts = module.split(".") if module else []
    return [".".join(parts[:i]) for i in range(len(parts))]


def below(path: str, module: str) -> bool:
    """True if `path` is inside of `module`."""
    return path != module and (not module or path.startswith(f"{module}."))


def _within(path: str, module: str) -> bool:
    return path == module or below(path, module)


def folded(modules: Mapping[str, Place]) -> dict[str, Place]:
    """The shortest paths below which all modules share one device."""
    found_at: dict[str, set[Place]] = defaultdict(set)
    for module, place in modules.items():
        for path in (*parents(module), module):
            found_at[path].add(place)
    shortest: dict[str, Place] = {}
    for module, place in modules.items():
        agreed = (path for path in (*parents(module), module) if len(found_at[path]) == 1)
        shortest[next(agreed, module)] = place
    return shortest
