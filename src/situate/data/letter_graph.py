"""The ops of a step with the classes of dimensions that may cut them, without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

WHOLE = -1
"""The form of an operand that every part reads whole, and of a result that is there once."""

SUM = -2
"""The form of a result in partial results."""

Value = tuple[int, int]
"""The number of an op or parameter in a letter graph, and of its output."""


@dataclass(frozen=True)
class ClassOption:
    """A way to cut an op: along a class of dimensions.

    Forms are the number of the class where the parts divide a tensor, `WHOLE` or `SUM`.

    Attributes:
        letter_class: the number of the class.
        inputs: the form of each operand.
        outputs: the form of each output.
    """

    letter_class: int
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Passage:
    """The views through which an op reads an operand.

    Attributes:
        nbytes: the fewest bytes of the operand and of its views.
        is_direct: True without views.
        every: classes that may cut all views.
        some: classes that may cut some views.
    """

    nbytes: int
    is_direct: bool = True
    every: frozenset[int] = frozenset()
    some: frozenset[int] = frozenset()


@dataclass(frozen=True)
class LetterOp:
    """An op, or a parameter with its update.

    Attributes:
        ops: the numbers of its ops in the graph of whole ops.
        tie: a text that ops in the same place of repeated blocks share; they are cut alike.
        reads: the operands; of a parameter, its gradients.
        sizes: bytes of each output; of a parameter, of the parameter.
        options: the ways to cut it.
        saved: bytes of its outputs that the backward pass reads, of an op of the forward pass.
        passages: of the operands, in the order of `reads`.
    """

    ops: tuple[int, ...]
    tie: str
    reads: tuple[Value, ...]
    sizes: tuple[int, ...]
    options: tuple[ClassOption, ...]
    saved: int = 0
    passages: tuple[Passage, ...] = ()


@dataclass(frozen=True)
class LetterGraph:
    """A step for the choice of a class and a number of parts for each op.

    Attributes:
        ops: all ops that compute and all parameters.
        kinds: of the classes, such as `heads`.
        units: of the classes.
        ranges: by class, a number that it shares with classes that divide the same dimension of a
            tensor in ranges of the same length.
        dimensions: by class, a number that it shares with classes that divide the same dimension of
            a tensor in any ranges.
    """

    ops: tuple[LetterOp, ...]
    kinds: tuple[str, ...]
    units: tuple[int, ...]
    ranges: tuple[int, ...] = ()
    dimensions: tuple[int, ...] = ()
