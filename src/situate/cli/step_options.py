"""Options of the step to capture: its update, the slices of its batch, modules that run again."""

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli import names
from situate.cli.option_groups import OMITTED, option_class
from situate.cli.options import Dim, ModelOrPlanOptimizer, Optimizer
from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.data.capture_options import CaptureOptions
    from situate.data.cuts import Cuts
    from situate.data.slices import AutoSlices, Slices

AUTO = "auto"
"""The word for a choice that planning makes."""

SLICES = (
    "Cut the batch of a captured training step into N equal slices, or into slices in the ratio "
    "A:B:...; the forward and backward pass then run once per slice, updates once."
)
SUMS = "Add up gradients of slices and partial results of parts in turn, or in pairs of neighbours"
ONCE = "A parameter with a single copy beside replicas; a pattern such as 'embed*' names several"
RECOMPUTE = (
    "Modules of a captured training step, by path such as layers.*, that run their forward pass "
    "again before their backward pass, which frees the memory of its results; all: the modules "
    "that save most"
)
CUTS = (
    "Cut ops of a captured step into parts along a dimension: heads=4, features=3:1, "
    "vocabulary=8, sequence=4, or all of a module, layers.*.mlp=4. An op that several cuts divide "
    "follows the first; repeat the option for more cuts"
)
FIT = "such as the one that auto chose"


@option_class
class SliceOptions:
    """Slices of a step's batch, as typed; `auto` leaves a choice to planning.

    Raises:
        SituateError: options that contradict one another, or a bad value.
    """

    slices: Annotated[
        str | None,
        typer.Option(
            "--slices",
            metavar="N|A:B:...|auto",
            help=f"{SLICES} auto: choose their number and sizes, within the same time limit.",
            autocompletion=names.complete_words(AUTO),
        ),
    ] = None
    slice_dim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INPUT=AXIS",
            help="Dimension along which to cut an input, or INPUT=whole if every slice reads all "
            "of it; name inputs by number or name. Default: 0.",
        ),
    ] = None
    slice_loss: Annotated[
        str | None,
        typer.Option(
            metavar="mean|sum",
            help="The loss is a mean, or a sum, over samples. Default: detected from the step.",
        ),
    ] = None
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Also compare slices with the whole batch on random numbers, at a small size, and "
            "report the difference of their gradients; takes a few seconds.",
        ),
    ] = True
    batch_norm: Annotated[
        str | None,
        typer.Option(
            metavar="slice|batch",
            help="Batch norms take statistics over each slice, or over the whole batch, for which "
            "slices wait for one another. Default: slice.",
            autocompletion=names.complete_words("slice", "batch"),
        ),
    ] = None
    sums: Annotated[
        str | None,
        typer.Option(
            "--sums",
            metavar="chain|tree|auto",
            help=f"{SUMS}; auto: for slices, whichever has the faster predicted step. "
            "Default: chain.",
            autocompletion=names.complete_words("chain", "tree", AUTO),
        ),
    ] = None
    replicas: Annotated[
        str | None,
        typer.Option(
            metavar="N|A:B:...",
            help="Keep N copies of the parameters, each updated by itself and read by equally many "
            "slices, or by A, B, ... of them. Default: a single copy.",
        ),
    ] = None
    once: Annotated[
        list[str] | None,
        typer.Option(
            "--once",
            metavar="PARAMETER|auto",
            help=f"{ONCE}; auto: those with the faster predicted step.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.slices == AUTO:
            self._check_open()
            self.open_slices()
        else:
            self.fixed_slices()

    def _check_open(self) -> None:
        """Refuse options that only a number of slices gives a meaning."""
        if self.replicas or self.once:
            raise SituateError(
                f"--{'replicas' if self.replicas else 'once'}: assigns copies to slices: give "
                f"--slices a number, {FIT}"
            )
        if self.sums == AUTO:
            raise SituateError(
                f"--sums auto: needs a number of slices: give --slices one, {FIT}, or --sums chain "
                "or tree"
            )

    def open_slices(self) -> "AutoSlices":
        """The rules for slices that planning chooses."""
        from situate.data.slices import parse_auto

        return parse_auto(self.slice_dim, self.slice_loss, self.batch_norm, self.sums)

    def fixed_slices(self) -> "Slices | None":
        """The slices; None for the whole batch."""
        from situate.data.slices import parse

        if self.slices is not None:
            return parse(
                self.slices,
                self.slice_dim,
                self.slice_loss,
                self.replicas,
                self.once,
                self.batch_norm,
                self.sums,
            )
        for name in ("slice_dim", "slice_loss", "batch_norm", "replicas", "once"):
            if getattr(self, name):
                raise SituateError(
                    f"--{name.replace('_', '-')} describes slices: give --slices too"
                )
        return None


@option_class
class FixedSliceOptions(SliceOptions):
    """Slices for a command that has no cluster to choose them for."""

    slices: Annotated[str | None, typer.Option("--slices", metavar="N|A:B:...", help=SLICES)] = None
    check: Annotated[bool, OMITTED] = True
    sums: Annotated[
        str | None,
        typer.Option(
            "--sums",
            metavar="chain|tree",
            help=f"{SUMS}. Default: chain.",
            autocompletion=names.complete_words("chain", "tree"),
        ),
    ] = None
    once: Annotated[
        list[str] | None, typer.Option("--once", metavar="PARAMETER", help=f"{ONCE}.")
    ] = None

    def __post_init__(self) -> None:
        choices = (
            ("slices", self.slices == AUTO, "give a number, such as 4"),
            ("sums", self.sums == AUTO, "give chain or tree"),
            ("once", AUTO in (self.once or ()), "name parameters"),
        )
        for name, is_open, remedy in choices:
            if is_open:
                raise SituateError(
                    f"--{name} auto: 'plan', 'compare' and 'explain' choose for a cluster: {remedy}"
                )
        super().__post_init__()


FixedCuts = Annotated[
    list[str] | None,
    typer.Option("--cuts", metavar="NAME=N|NAME=A:B:...", help=f"{CUTS}."),
]
"""Cuts for a command that has no cluster to choose them for."""


def fixed_cuts(texts: list[str] | None, cut: SliceOptions) -> "Cuts | None":
    """The cuts of ops; None for whole ops.

    Raises:
        SituateError: planning would choose them, a text is no cut, or an order of sums applies to
            nothing.
    """
    if texts == [AUTO]:
        raise SituateError(
            "--cuts auto: 'plan', 'compare' and 'explain' choose for a cluster: name cuts, such as "
            "heads=4"
        )
    return _cuts(texts, cut)


def _cuts(texts: list[str] | None, cut: SliceOptions) -> "Cuts | None":
    """The cuts, whose partial results are added up as the gradients of slices are."""
    from situate.data.cuts import parse_cuts

    named = bool(texts) and texts != [AUTO]
    if cut.sums and cut.slices is None:
        if not named:
            raise SituateError(
                "--sums describes slices or cuts: give --slices too, or names to --cuts"
            )
        if cut.sums == AUTO:
            raise SituateError("--sums auto: chooses for slices: give chain or tree for cuts alone")
    return parse_cuts(texts, None if cut.sums == AUTO else cut.sums) if texts else None


@option_class
class StepOptions:
    """The step to capture, as typed.

    Raises:
        SituateError: a bad value, or modules to choose for slices that are still to choose.
    """

    optimizer: Optimizer = None
    dim: Dim = None
    cut: SliceOptions = field(default_factory=SliceOptions)
    recompute: Annotated[
        str | None,
        typer.Option(
            "--recompute",
            metavar="MODULE,...|all|auto",
            help=f"{RECOMPUTE}; auto: as many of these as memory needs.",
        ),
    ] = None
    cuts: Annotated[
        list[str] | None,
        typer.Option(
            "--cuts",
            metavar="NAME=N|NAME=A:B:...|auto",
            help=f"{CUTS}. auto: those with the shortest step.",
        ),
    ] = None

    def __post_init__(self) -> None:
        self.capture()
        if self.cut.slices == AUTO and self.recompute == AUTO:
            raise SituateError(
                f"--recompute auto: needs a number of slices: give --slices one, {FIT}, or "
                "--recompute names of modules, or all"
            )
        if self.cuts == [AUTO]:
            self._check_open_cuts()

    def _check_open_cuts(self) -> None:
        """Refuse choices of planning that are made before or after that of cuts."""
        choices = (
            ("slices", self.cut.slices == AUTO, "a number"),
            ("sums", self.cut.sums == AUTO, "chain or tree"),
            ("once", AUTO in (self.cut.once or ()), "names of parameters"),
            ("recompute", self.recompute == AUTO, "names of modules, or all"),
        )
        for name, is_open, remedy in choices:
            if is_open:
                raise SituateError(
                    f"--cuts auto: planning makes one such choice at a time: give --{name} "
                    f"{remedy}, or name the cuts"
                )

    def capture(self) -> "CaptureOptions":
        """The options of the capture; without slices if planning chooses them."""
        from situate.data.capture_options import CaptureOptions
        from situate.data.recompute import parse_modules

        return CaptureOptions(
            self.optimizer,
            parse_dims(self.dim),
            slices=None if self.cut.slices == AUTO else self.cut.fixed_slices(),
            recompute=() if self.recompute is None else parse_modules(self.recompute),
            cuts=_cuts(self.cuts, self.cut),
            check_slices=self.cut.check,
        )


@option_class
class FixedStepOptions(StepOptions):
    """The step of a command that has no cluster to choose slices or modules for."""

    cut: FixedSliceOptions = field(default_factory=FixedSliceOptions)
    recompute: Annotated[
        str | None, typer.Option("--recompute", metavar="MODULE,...|all", help=f"{RECOMPUTE}.")
    ] = None
    cuts: FixedCuts = None

    def __post_init__(self) -> None:
        fixed_cuts(self.cuts, self.cut)
        super().__post_init__()


@option_class
class ExplainedStepOptions(StepOptions):
    """The step of a plan, or of a model to plan."""

    optimizer: ModelOrPlanOptimizer = None


def parse_dims(texts: Sequence[str] | None) -> dict[str, int]:
    """Sizes by dimension from texts such as `batch=8`.

    Raises:
        SituateError: a text is no NAME=SIZE, or a dimension has two sizes.
    """
    sizes: dict[str, int] = {}
    for name, size in map(_dim, texts or ()):
        if sizes.setdefault(name, size) != size:
            raise SituateError(f"--dim {name}: has sizes {sizes[name]} and {size}: give one size")
    return sizes


def _dim(text: str) -> tuple[str, int]:
    name, _, size = text.rpartition("=")
    if not name or not (size.isascii() and size.isdecimal()) or not 0 < int(size[:20]) < 2**53:
        raise SituateError(f"--dim {text!r}: must be NAME=SIZE with a positive size")
    return name, int(size)
