"""A device's share of a program as straight-line Python, without an interpreter between kernels.

Every op is a block of lines. A worker binds the names that are not local:

    f3 kernel          c2 constant     p5 state       x0 input
    take4, send4 channel               s4 its memory  post4 its flag
    update7 update     commit called before the first update
    seed2 seed         done0 result    laid_out restores captured strides

State keeps its memory, and so do its views, which are made once: `w1`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from situate.runtime.programs.kernels import is_dense, kernel_name
from situate.runtime.programs.lines import (
    OUTSIDE_MEMORY,
    ExecutedLine,
    Line,
    local_names,
    straight_line,
)
from situate.runtime.programs.program import Program, Roles
from situate.runtime.programs.write_targets import in_place_calls, out_kernel
from situate.torch_capture.flow import Storage, base, is_plain_copy
from situate.torch_capture.names import state_name

if TYPE_CHECKING:
    import torch
    from torch import fx
    from torch._ops import OpOverload


@dataclass
class Block:
    """The lines of an op: receiving, computing, sending."""

    op: int | None
    takes: list[Line] = field(default_factory=list)
    body: list[Line] = field(default_factory=list)
    sends: list[Line] = field(default_factory=list)

    def lines(self, timed: bool) -> list[Line]:
        """All lines; `timed` reads the clock before and after the computing."""
        if not timed or self.op is None:
            return [*self.takes, *self.body, *self.sends]
        clock_before, clock_after = (
            Line(f"began[{self.op}] = now()"),
            Line(f"ended[{self.op}] = now()"),
        )
        return [*self.takes, clock_before, *self.body, clock_after, *self.sends]


@dataclass
class Names:
    """The names that a worker binds to values; they are the same for every device.

    Attributes:
        kernels: qualified names of operators, such as `aten::add.Tensor`.
        constants: by type and text, arguments that are no literals, each with its number.
        state: parameters, buffers and constants of the model, by path.
        seeds: of random nodes, the rank among the unplaced step's draws.
        channels: the storages that cross devices.
        one: dtype of the gradient of the loss by itself.
    """

    kernels: dict[str, int] = field(default_factory=dict)
    constants: dict[str, tuple[int, object]] = field(default_factory=dict)
    state: dict[str, int] = field(default_factory=dict)
    seeds: dict[fx.Node, int] = field(default_factory=dict)
    channels: dict[Storage, int] = field(default_factory=dict)
    one: torch.dtype | None = None


class DeviceSource:
    """Writes the blocks of one device, op by op in order of execution.

    Attributes:
        here: its ops.
        memory: by local name, the first name of its memory.
        nbytes: by local name, the bytes of memory first made under it.
    """

    def __init__(self, roles: Roles, names: Names, here: frozenset[int]) -> None:
        self.blocks: list[Block] = []
        self.here = here
        self._roles, self._names = roles, names
        self._program: Program = roles.program
        self._locals: dict[fx.Node | Storage, str] = {}
        self.memory: dict[str, str] = {}
        self.nbytes: dict[str, int] = {}
        self._outside = {OUTSIDE_MEMORY}
        self._sent: set[str] = set()
        self._views: list[str] = []
        self._received: dict[str, int] = {}
        self._block = Block(None)
        self._count = 0

    def write(self, op: int) -> None:
        """Write the block of one op."""
        self._block = Block(op)
        node = self._program.nodes[op]
        match self._roles.of(op):
            case "compute":
                self._compute(node)
            case "sum":
                self._sum(node)
            case "update":
                self._update(node)
            case "copy":
                self._copy(node, self._program.mutations[state_name(node)])
            case _:
                pass
        self.blocks.append(self._block)

    def write_results(self) -> None:
        """Write a last block, of the results made here."""
        self._block = Block(None)
        for k, node in enumerate(self._program.results):
            if self._roles.owner[self._roles.storage[node]] in self.here:
                self._add(f"done{k}({self._value(node)})")
        self.blocks.append(self._block)

    def send(self, storage: Storage) -> None:
        """Let the block that makes a storage send it.

        If nothing here reads it, a kernel may compute it directly in the channel's memory, which is
        slower to read.
        """
        block, node = self._block_of[self._roles.owner[storage]], storage[0]
        channel, name = self._names.channels[storage], self._stored(storage)
        self._sent.add(self.memory.get(name, OUTSIDE_MEMORY))
        sends = Line(f"send{channel}({name})")
        if name not in self._names_read and (kernel := out_kernel(node)):
            # The line that makes the tensor gets a second form, which writes it into the channel
            # itself.
            position = next(i for i, line in enumerate(block.body) if line.assigned == [name])
            arguments = f"{self._argument_text(node)}, {kernel.argument}=s{channel}"
            text = f"{name} = {self._kernel(kernel.name)}({arguments})"
            block.body[position] = replace(block.body[position], direct=text)
            sends = replace(sends, direct=f"post{channel}()")
        block.sends.append(sends)

    @cached_property
    def _names_read(self) -> frozenset[str]:
        """The names of memory that is read here."""
        # A name counts as read through any view of its memory, but not in the line that makes it.
        lines = (line for block in self.blocks for line in block.lines(timed=False))
        names = (name for line in lines for name in {*local_names(line.text)} - {*line.assigned})
        return frozenset(self.memory[name] for name in names)

    @cached_property
    def _block_of(self) -> dict[int, Block]:
        return {block.op: block for block in self.blocks if block.op is not None}

    def text(
        self, timed: bool, direct: bool = True, commits: bool = False, laid_out: bool = False
    ) -> str:
        """The step as a Python function, after the views that are made once. Each local name is
        deleted after its last use.

        Args:
            timed: set `began[op]` and `ended[op]` to the clock before and after each op.
            direct: compute crossing tensors in the channel's memory where possible. Otherwise they
                leave while the device goes on, and are not overwritten.
            commits: update after all else, and after a call of `commit`.
            laid_out: give results the strides of a CPU's kernels at capture, on which views depend.
        """
        lines = self.executed(timed, direct, commits)
        texts = [text for line in lines for text in line.texts(laid_out)]
        body = "\n    ".join(texts or ["pass"])
        return "".join(f"{view}\n" for view in self._views) + f"def step():\n    {body}\n"

    def executed(
        self, timed: bool = False, direct: bool = True, commits: bool = False
    ) -> list[ExecutedLine]:
        """The lines of the step, in order."""
        blocks = self._committed() if commits else self.blocks
        lines = [line for block in blocks for line in block.lines(timed)]
        # A copy that leaves while the device goes on reads a tensor after its line: nobody may
        # write there.
        outside = self._outside if direct else self._outside | self._sent
        return straight_line(lines, self.memory, outside, direct)

    def _committed(self) -> list[Block]:
        first: list[Block] = []
        updates: list[Block] = []
        for block in self.blocks:
            is_update = block.op is not None and self._roles.of(block.op) == "update"
            (updates if is_update else first).append(block)
        return [*first, Block(None, body=[Line("commit()")]), *updates]

    def received(self) -> dict[int, tuple[list[int], int]]:
        """By channel, the ops that wait for it, and the number of blocks that have run at its last
        read."""
        waiting: dict[int, list[int]] = {}
        last: dict[int, int] = {}
        for i, block in enumerate(self.blocks, start=1):
            for name in {n for line in block.lines(timed=False) for n in local_names(line.text)}:
                if (channel := self._received.get(self.memory[name])) is not None:
                    last[channel] = i
                    # Reads through views come after a read of the tensor itself.
                    if name in self._received and block.op is not None:
                        waiting.setdefault(channel, []).append(block.op)
        return {channel: (waiting.get(channel, []), i) for channel, i in last.items()}

    def _add(self, text: str) -> None:
        self._block.body.append(Line(text, op=self._block.op))

    def _compute(self, node: fx.Node) -> None:
        self._call(node)
        folded = self._program.step.folded
        for counter in folded.counters.get(node, ()):
            self._call(counter)
        for buffer in folded.buffers.get(node, ()):
            if (new := self._program.mutations.get(state_name(buffer))) is not None:
                self._copy(buffer, new)

    def _call(self, node: fx.Node) -> None:
        """Add the lines that make the storages of a node."""
        import torch

        if torch.Tag.nondeterministic_seeded in _operator(node).tags:
            self._add(f"seed{self._names.seeds[node]}()")
        if isinstance(node.meta["val"], (list, tuple)):
            self._call_of_many(node)
        else:
            self._call_of_one(node)

    def _call_of_many(self, node: fx.Node) -> None:
        """Add the line of a call with several outputs. An unread output is `_`, deleted at once,
        for a name would keep its memory."""
        values, call, used = node.meta["val"], self._text(node), self._roles.used
        names = [
            self._new_storage((node, k)) if (node, k) in used else "_" for k in range(len(values))
        ]
        strides = tuple(
            (name, value.stride())
            for name, value in zip(names, values, strict=True)
            if name != "_" and is_dense(value)
        )
        # The comma also unpacks a list with a single output.
        text = f"{', '.join(names)}, = {call}"
        self._block.body.append(Line(text, op=self._block.op, strides=strides))
        if "_" in names:
            self._add("del _")

    def _call_of_one(self, node: fx.Node) -> None:
        value, call, over = node.meta["val"], self._text(node), tuple(self._in_place(node))
        name = self._new_storage((node, 0))
        # Which of these may be used shows only when all lines are there: see `straight_line`.
        instead = tuple((old, f"{name} = {text}") for old, text in over)
        strides = ((name, value.stride()),) if is_dense(value) else ()
        self._block.body.append(Line(f"{name} = {call}", instead, self._block.op, strides=strides))

    def _in_place(self, node: fx.Node) -> Iterator[tuple[str, str]]:
        """The local names that a node may overwrite with its result, each with the call."""
        for first, other in in_place_calls(node):
            arguments = [self._argument(first), *(self._argument(o) for o in other)]
            yield arguments[0], f"{self._kernel(_name_in_place(node))}({', '.join(arguments)})"

    def _sum(self, node: fx.Node) -> None:
        """Add the sum of gradients of tied names."""
        first, *others = (self._value(g) for g in self._program.gradients[state_name(node)])
        add = self._kernel("aten::add.Tensor")
        for other in others:
            first = f"{add}({first}, {other})"
        self._add(f"{self._new_storage((node, 1))} = {first}")

    def _update(self, node: fx.Node) -> None:
        gradients = self._program.gradients[state_name(node)]
        many = len(gradients) > 1
        gradient = self._stored((node, 1)) if many else self._value(gradients[0])
        self._add(f"update{self._state(node)}({gradient})")

    def _copy(self, buffer: fx.Node, new: fx.Node) -> None:
        self._add(f"keep{self._state(buffer)}()")
        self._add(f"p{self._state(buffer)}.copy_({self._value(new)})")

    def _value(self, node: fx.Node) -> str:
        """The name of a node's value here; views are made at their first read."""
        if node in self._locals:
            return self._locals[node]
        source = base(node) if node.op == "call_function" else None
        if source is None:
            return self._stored(self._roles.storage[node])
        if _is_itself(node, source):
            return self._value(source)
        source_name = self._value(source)
        # Views of state, and views of those, are valid in every step, since state stays where it
        # is.
        if source_name[0] in "pw" and _is_view(node):
            name = self._locals[node] = f"w{len(self._views)}"
            self._views.append(f"{name} = {self._text(node)}")
            return name
        text = self._text(node)
        name = self._new(node)
        # A view is in the memory of its source; of state and inputs, which no name stands for,
        # outside.
        self.memory[name] = self.memory.get(source_name, OUTSIDE_MEMORY)
        self._add(f"{name} = {text}")
        return name

    def _stored(self, storage: Storage) -> str:
        """The name of a storage here; one made elsewhere is received."""
        if storage in self._locals:
            return self._locals[storage]
        node, op = storage[0], self._roles.owner[storage]
        role = self._roles.of(op) if node.op != "call_function" else "compute"
        if role == "input":
            return f"x{node.meta['desc'].idx}"
        if role == "tangent":
            self._names.one = node.meta["val"].dtype
            return "one"
        if op in self.here and node.op != "call_function" and not storage[1]:
            return f"p{self._state(node)}"
        # Made elsewhere: all devices number the channels alike, since they share the names.
        channel = self._names.channels.setdefault(storage, len(self._names.channels))
        name = self._new(storage)
        self._outside.add(name)
        self._received[name] = channel
        self._block.takes.append(Line(f"{name} = take{channel}()"))
        return name

    def _state(self, node: fx.Node) -> int:
        path = state_name(node)
        path = self._program.step.trace.canonical.get(path, path)
        return self._names.state.setdefault(path, len(self._names.state))

    def _new_storage(self, storage: Storage) -> str:
        """A name for a storage made here; a sum of gradients is as large as its parameter."""
        name, node = self._new(storage), storage[0]
        own = storage if node.op == "call_function" else (node, 0)
        self.nbytes[name] = self._program.step.nbytes(own)
        return name

    def _new(self, value: fx.Node | Storage) -> str:
        name = self._locals[value] = f"v{self._count}"
        self.memory[name] = name
        self._count += 1
        return name

    def _text(self, node: fx.Node) -> str:
        """The call of a node, as source."""
        if node.target is operator.getitem:
            return f"{self._value(node.args[0])}[{node.args[1]}]"  # type: ignore[arg-type]
        return f"{self._kernel(kernel_name(node))}({self._argument_text(node)})"

    def _argument_text(self, node: fx.Node) -> str:
        """The arguments of a call, as source."""
        arguments = [self._argument(argument) for argument in _arguments(node)]
        arguments += [f"{name}={self._argument(value)}" for name, value in node.kwargs.items()]
        return ", ".join(arguments)

    def _kernel(self, name: str) -> str:
        kernels = self._names.kernels
        return f"f{kernels.setdefault(name, len(kernels))}"

    def _argument(self, value: Any) -> str:
        from torch import fx

        if isinstance(value, fx.Node):
            return self._value(value)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self._argument(entry) for entry in value)}]"
        # Literals whose text is exactly the value; all else is bound as a constant.
        if value is None or type(value) in (bool, int, str):
            return repr(value)
        if type(value) is float and math.isfinite(value):
            return repr(value)
        constants = self._names.constants
        key = f"{type(value).__name__} {value!r}"
        return f"c{constants.setdefault(key, (len(constants), value))[0]}"


def _operator(node: fx.Node) -> OpOverload:
    return cast("OpOverload", node.target)


def _name_in_place(node: fx.Node) -> str:
    """The qualified name of the in-place operator, such as `aten::add_.Tensor`."""
    packet, dot, overload = kernel_name(node).partition(".")
    return f"{packet}_{dot}{overload}"


def _is_itself(node: fx.Node, source: fx.Node) -> bool:
    """True for a view equal to its source, which needs no call."""
    import torch

    aten = torch.ops.aten
    if node.target in (aten.detach.default, aten.alias.default):
        return True
    return node.target is aten.clone.default and is_plain_copy(node, source)


def _is_view(node: fx.Node) -> bool:
    """True for a node that makes no copy, even if `base` sees none."""
    return node.target is operator.getitem or getattr(node.target, "is_view", False)


def _arguments(node: fx.Node) -> Sequence[Any]:
    """The arguments of a node. Batch norm's backward gets running statistics, but reads them only
    if it does not train."""
    import torch

    if node.target is torch.ops.aten.native_batch_norm_backward.default and node.args[7]:
        return [*node.args[:3], None, None, *node.args[5:]]
    return node.args
