"""Notes to the caller about the inference of shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from situate.readers.onnx.dims import ITERATIONS, option


@dataclass
class Notes:
    """Names of values and nodes, by the assumption about them."""

    assumed: set[str] = field(default_factory=set)
    """Values whose shape or content may depend on a dimension of assumed size 1."""
    defaults: list[str] = field(default_factory=list)
    """Options for the sizes of input dimensions of assumed size 1."""
    data: dict[str, list[int]] = field(default_factory=dict)
    """Axes that depend on data, by value; their size is assumed to be 1."""
    contradicted: list[str] = field(default_factory=list)
    """Values of other shapes than the model states."""
    trusted: list[str] = field(default_factory=list)
    """Values with a stated shape only, because inference rejects their node."""
    unequal: list[str] = field(default_factory=list)
    """Values that the branches of an If make in different shapes."""
    loops: list[str] = field(default_factory=list)
    """Loops of unknown trip count."""
    changing: list[str] = field(default_factory=list)
    """Carried values of loops whose shape changes."""

    def warnings(self) -> Iterator[str]:
        """A line for each kind of note."""
        if self.data:
            have = _have(list(self.data), "dimensions that depend on the data, taken as 1")
            yield f"{have}; {_some(self._options(), ' ')} gives them sizes"
        if self.contradicted:
            yield _have(self.contradicted, "another shape than the model states, and it is taken")
        if self.trusted:
            yield _have(self.trusted, "the shape that the model states: inference rejects their op")
        if self.unequal:
            yield _have(self.unequal, "a shape that depends on the branch taken; the larger counts")
        for loop in self.loops:
            yield (
                f"loop {loop!r} counts as one iteration, since its trip count depends on the data; "
                f"{option(loop, ITERATIONS)} gives another"
            )
        if self.changing:
            yield _have(self.changing, "another shape in every iteration; the first one's counts")

    def hint(self) -> str:
        """A possible reason for contradicting shapes."""
        options = [*self.defaults, *self._options()]
        return f"; {_some(options, ' ')} gives sizes to what is taken as 1" if options else ""

    def _options(self) -> list[str]:
        return [option(name, axis) for name, axes in self.data.items() for axis in axes]


def _have(names: list[str], noun: str) -> str:
    have = "1 value has" if len(names) == 1 else f"{len(names)} values have"
    return f"{have} {noun}: {_some(list(map(repr, names)), ', ')}"


def _some(texts: list[str], mark: str) -> str:
    """The first three."""
    return mark.join(texts[:3]) + (f"{mark}..." if len(texts) > 3 else "")
