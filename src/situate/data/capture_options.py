"""Options of a capture, from the model's name to its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from situate.data.cuts import Cuts
from situate.data.recompute import checked_modules, is_auto
from situate.data.slices import Slices
from situate.data.update_rule import update_rule
from situate.validation import check


@dataclass(frozen=True)
class CaptureOptions:
    """Options for reading or capturing the graph of a model.

    Attributes:
        optimizer: the update of a captured training step, such as `sgd` or `adam`; None for the
            network's own, or `sgd`.
        dims: sizes of the open dimensions of an ONNX file, by name.
        fresh: capture a network of the zoo even if its graph is in the package or the cache.
        signed: with the signatures that measured costs are looked up by, which packaged graphs
            lack.
        slices: how the batch of a training step is cut; None for the whole batch.
        recompute: paths of modules that run their forward pass again, or `all`. `auto` stands for
            modules that planning chooses, and must be resolved before the capture.
        cuts: of ops into parts; None for whole ops.
        check_slices: compare slices with the whole batch on random numbers.

    Raises:
        SituateError: an unknown optimizer, or names of modules that are none.
    """

    optimizer: str | None = None
    dims: Mapping[str, int] | None = None
    fresh: bool = False
    signed: bool = False
    slices: Slices | None = None
    recompute: Sequence[str] = ()
    cuts: Cuts | None = None
    check_slices: bool = True

    def __post_init__(self) -> None:
        check(self.dims, dict | None, "dims")
        check(self.slices, Slices | None, "slices")
        check(self.cuts, Cuts | None, "cuts")
        if self.optimizer is not None:
            update_rule(self.optimizer)
        if not is_auto(self.recompute):
            object.__setattr__(self, "recompute", checked_modules(self.recompute))

    @property
    def from_cache(self) -> bool:
        """True if a graph on disk will do; graphs on disk have passed their check."""
        return not self.fresh and (self.check_slices or self.slices is None)
