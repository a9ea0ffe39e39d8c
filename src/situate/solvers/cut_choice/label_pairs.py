"""The labels of ops in any cut, and the least seconds of the exchange between two labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from situate.data.arrays import Floats
from situate.data.letter_graph import SUM, WHOLE, LetterGraph, LetterOp, Passage
from situate.solvers.cut_choice.kernels import Cost, Kernels, Parts


class Label(NamedTuple):
    """The cut of an op, and the form of one of its tensors.

    Attributes:
        cut: a class; `WHOLE`; or `SUM` for an addition of partial results that stays partial.
        form: a class, `WHOLE` or `SUM`.
        parts: numbers of parts of the op.
    """

    cut: int
    form: int
    parts: Parts


class Pair(NamedTuple):
    """The labels of a producer and a reader of a tensor, with numbers of their own for classes.

    Attributes:
        sources, targets: the labels of the producer and of the reader.
        passage: the views between them.
        alike: pairs of classes that may divide a dimension in the same parts.
        crossing: pairs of classes that may divide a dimension in other ranges.
    """

    sources: tuple[Label, ...]
    targets: tuple[Label, ...]
    passage: Passage
    alike: frozenset[tuple[int, int]]
    crossing: frozenset[tuple[int, int]]


def ranges(most: int) -> Iterator[Parts]:
    """Ranges of numbers of parts from 2 to the most; those of more than eight are wider."""
    low = 2
    while low <= most:
        high = min(most, low if low <= 8 else low * 3 // 2)
        yield low, high
        low = high + 1


def labels_of(
    op: LetterOp, units: Sequence[int], numbers: Sequence[Parts], is_sum: bool
) -> tuple[Label, ...]:
    """The labels of an op, the whole op first. Their forms are those of no tensor yet.

    Args:
        units: of the classes.
        numbers: of parts.
        is_sum: True for an addition of two tensors.
    """
    classes = [option.letter_class for option in op.options]
    cuts = [Label(c, c, n) for c in classes for n in numbers if n[0] <= units[c]]
    sums = [Label(SUM, SUM, n) for n in numbers] if is_sum else []
    return (Label(WHOLE, WHOLE, (1, 1)), *cuts, *sums)


def pair_of(
    letters: LetterGraph, labels: Sequence[Sequence[Label]], reader: int, position: int
) -> Pair:
    """The pair of a reader and of the producer of one of its operands."""
    target = letters.ops[reader]
    producer, k = target.reads[position]
    outputs = {option.letter_class: option.outputs[k] for option in letters.ops[producer].options}
    inputs = {option.letter_class: option.inputs[position] for option in target.options}
    views = target.passages[position]
    classes = dict.fromkeys((*outputs, *inputs, *sorted(views.some)))
    # Numbered from 0 in each pair, so that pairs in repeated blocks are equal.
    names = {WHOLE: WHOLE, SUM: SUM, **{c: i for i, c in enumerate(classes)}}
    sources = tuple(Label(names[c], names[outputs.get(c, c)], n) for c, _, n in labels[producer])
    targets = tuple(Label(names[c], names[inputs.get(c, c)], n) for c, _, n in labels[reader])
    cuts_all, cuts_some = (
        frozenset(names[c] for c in divided) for divided in (views.every, views.some)
    )
    pairs = [(a, b) for a, b in product(outputs, inputs) if a != b]
    alike, crossing = (
        frozenset((names[a], names[b]) for a, b in pairs if number and number[a] == number[b])
        for number in (letters.ranges, letters.dimensions)
    )
    passage = Passage(views.nbytes, views.is_direct, cuts_all, cuts_some)
    return Pair(sources, targets, passage, alike, crossing)


def is_loose(letters: LetterGraph, producer: LetterOp, output: int, reader: LetterOp) -> bool:
    """True if the largest part of a reader may not wait for the largest part of the producer: one
    part alone has written the result, or two classes divide a dimension into other shares."""
    if any(option.outputs[output] == WHOLE for option in producer.options):
        return True
    sources, targets = ({o.letter_class for o in op.options} for op in (producer, reader))
    # Of two classes that both ops have, the same one cuts both.
    pairs = ((a, b) for a in sources for b in targets if a not in targets or b not in sources)
    number = letters.ranges
    return any(a != b and number and number[a] == number[b] for a, b in pairs)


def pair_seconds(pair: Pair, kernels: Kernels) -> Floats:
    """(2, sources, targets, 2) seconds of the load and of the path, in two ways; infinite where
    labels exclude each other."""
    result = np.full((2, len(pair.sources), len(pair.targets), 2), np.inf)
    for (i, source), (j, target) in product(enumerate(pair.sources), enumerate(pair.targets)):
        for way, cost in enumerate(_ways(pair, source, target, kernels)):
            result[:, i, j, way] = cost
    return result


def _ways(pair: Pair, source: Label, target: Label, kernels: Kernels) -> tuple[Cost, ...]:
    if _exclude_each_other(pair, source, target):
        return ()
    # One cut of a dimension under two names.
    if (source.form, target.form) in pair.alike:
        return ((0.0, 0.0),)
    # The seconds do not depend on the numbers of classes.
    form = target.form if target.form < 0 else int(target.form != source.form)
    return kernels.ways(
        (min(source.form, 0), source.parts),
        (form, target.parts),
        pair.passage.nbytes,
        _is_direct(pair, source, target),
    )


def _exclude_each_other(pair: Pair, source: Label, target: Label) -> bool:
    """True for labels that ops have together in no cut.

    An op is whole only if none of its classes is cut, a class has one number of parts, and of two
    classes the same one comes first for all ops.
    """
    of_source, of_target = (
        {label.cut for label in labels} for labels in (pair.sources, pair.targets)
    )
    cuts_target = source.cut >= 0 and source.cut in of_target
    cuts_source = target.cut >= 0 and target.cut in of_source
    if WHOLE in (source.cut, target.cut):
        return cuts_target or cuts_source
    if source.cut == target.cut:
        return source.parts != target.parts
    return cuts_target and cuts_source


def _is_direct(pair: Pair, source: Label, target: Label) -> bool:
    """True if nobody between both needs the whole tensor: no view, because the cut of one of them
    divides it, and no part that divides the same dimension in other ranges."""
    if (source.form, target.form) in pair.crossing:
        return False
    return pair.passage.is_direct or any(
        label.cut >= 0
        and label.form == label.cut
        and label.cut in pair.passage.every
        and pair.passage.some <= {other.cut for other in labels}
        for label, labels in ((source, pair.sources), (target, pair.targets))
    )
