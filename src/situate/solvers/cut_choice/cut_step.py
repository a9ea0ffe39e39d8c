"""A step whose ops may be cut, and its batch sliced, in ways that planning chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from situate.data.cuts import Cuts
from situate.data.graph import Graph
from situate.data.letter_graph import LetterGraph
from situate.data.problem import Problem
from situate.solvers.cut_choice.candidates import Units
from situate.solvers.cut_choice.slicings import Shares

if TYPE_CHECKING:
    from situate.torch_capture import TracedStep

ProblemOf = Callable[["Cuts | None"], Problem]


@dataclass(frozen=True)
class CutStep:
    """A step whose ops may be cut.

    Attributes:
        problem_of: makes the problem of the step with these cuts, or of whole ops.
        units: of the step's classes.
        shorter: the step with at most this many repeated blocks; None if that is no other.
        letters: the ops of the step with the classes that may cut them; None if unknown.
        sliced: the step with its batch in slices of these shares; None if it is not the same step.
    """

    problem_of: ProblemOf
    units: Units
    shorter: Callable[[int], CutStep | None] = lambda _: None
    letters: Callable[[], LetterGraph | None] = lambda: None
    sliced: Callable[[Shares], CutStep | None] = lambda _: None

    @classmethod
    def of(
        cls,
        step: TracedStep,
        problem_of: Callable[[Graph], Problem],
        recompute: Sequence[str] = (),
    ) -> CutStep:
        """The problems of a traced step.

        Args:
            problem_of: makes the problem of a graph.
            recompute: modules that run again. They may be missing in a shorter step.
        """

        def shorter(blocks: int) -> CutStep | None:
            short = None if recompute else step.shorter(blocks)
            return None if short is None else cls.of(short, problem_of)

        def sliced(shares: Shares) -> CutStep | None:
            in_slices = step.sliced(shares)
            return None if in_slices is None else cls.of(in_slices, problem_of, recompute)

        return cls(
            lambda cuts: problem_of(step.graph(recompute, cuts)),
            step.units,
            shorter,
            # Modules that run again have ops of which the letters know nothing.
            lambda: None if recompute else step.letters,
            cache(sliced),
        )
