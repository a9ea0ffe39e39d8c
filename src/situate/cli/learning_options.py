"""Options of methods that learn, and the few that other methods share with them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from situate.cli import names
from situate.cli.option_groups import After, option_class
from situate.cli.options import not_negative, seconds
from situate.cli.search_options import SearchBudget
from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.evaluators.measurements import Evaluator
    from situate.evaluators.steps import Steps
    from situate.solvers.learned.learner import Learning, Settings

EVALUATORS = ("simulator", "hardware")

CLOCKS = ("virtual", "wall")


@option_class
class LearningOptions:
    """The options of methods that learn, as typed; None for one that was not.

    Raises:
        SituateError: an unknown name, or options that exclude one another.
    """

    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**9,
            help="Placements that a learning method, or 'random', measures. Default: 2,400.",
        ),
    ] = None
    settings: Annotated[
        str | None,
        typer.Option(
            help="Settings of a learning method, or of brkga: paper, as published, or tuned, "
            "situate's choice; hierarchical also has release, as in its released code. "
            "Default: tuned.",
            autocompletion=names.complete_words("paper", "release", "tuned"),
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Trained weights of regal, gas or idrs, as 'situate train' writes them; or those "
            "that come with situate (linked, which scores edges; real or synthetic, by the graphs "
            "of their training); or constant, for none. Default: constant for regal, synthetic "
            "for idrs.",
        ),
    ] = None
    grouping: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Rule by which a learning method groups ops: none, prefix, colocation or bytes; "
            "structure, which uses FLOPs; or heavy-edge or metis, which use costs. Default: the "
            "method's own.",
            autocompletion=names.complete(names.groupings),
        ),
    ] = None
    groups: Annotated[
        int | None,
        typer.Option(
            "--groups",
            min=1,
            max=10**6,
            help="Number of groups for bytes, structure, heavy-edge or metis.",
        ),
    ] = None
    noise: Annotated[
        float | None,
        typer.Option(
            callback=not_negative,
            help="Noise of simulated measurements: standard deviation of their logarithm. "
            "Default: 0.",
        ),
    ] = None
    evaluator: Annotated[
        str | None,
        typer.Option(
            help="Evaluator of a learning method's placements: simulator, or hardware, which runs "
            "them on this machine, or on those of --workers. Default: simulator.",
            autocompletion=names.complete_words(*EVALUATORS),
        ),
    ] = None
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|ray|ray:N|ray://HOST:PORT",
            help="Workers that measure a learning method's placements side by side, or search for "
            "auto: N processes of this machine, or those of a Ray cluster. They do not change the "
            "result, but auto gets further within a time limit. Default: this process alone.",
        ),
    ] = None
    controllers: Annotated[
        int | None,
        typer.Option(
            "--controllers",
            min=1,
            max=1024,
            help="Controllers that learn one policy asynchronously, for colocrl and hierarchical. "
            "Default: one, which waits for all its samples.",
        ),
    ] = None
    clock: Annotated[
        str | None,
        typer.Option(
            help="Clock of --controllers: virtual, which advances by the seconds that workers "
            "measure, or wall, which applies gradients as --workers finish. Default: virtual.",
            autocompletion=names.complete_words(*CLOCKS),
        ),
    ] = None
    stalest: Annotated[
        int | None,
        typer.Option(
            "--stalest",
            min=0,
            help="Largest number of updates by which a gradient of --controllers may be late. "
            "Later ones are dropped. Default: no limit.",
        ),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(
            parser=seconds,
            metavar="SECONDS",
            help="Time limit of one placement with --evaluator hardware, in seconds. Default: 60.",
        ),
    ] = None
    study: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Study that records every measurement; the same command resumes it.",
        ),
    ] = None
    curves: Annotated[
        str | None,
        typer.Option("--curves", metavar="FILE", help="Draw learning curves, as .svg or .png."),
        After("schedule"),
    ] = None
    tensorboard: Annotated[
        str | None,
        typer.Option(
            "--tensorboard",
            metavar="FOLDER",
            help="Write TensorBoard logs here while methods learn: mean, best and failures, one "
            "run per method.",
        ),
        After("schedule"),
    ] = None

    def __post_init__(self) -> None:
        from situate.cli.names import check_name
        from situate.evaluators.workers.places import Place
        from situate.grouping import GROUPINGS
        from situate.solvers.learned.learner import Settings

        if self.settings is not None:
            check_name(self.settings, get_args(Settings), "settings")
        if self.grouping is not None:
            check_name(self.grouping, GROUPINGS, "grouping")
        if self.evaluator is not None:
            check_name(self.evaluator, EVALUATORS, "evaluator")
        if self.workers is not None:
            Place.parse(self.workers)
        if self.clock is not None:
            check_name(self.clock, CLOCKS, "clock")
        self._check_partners()

    def _check_partners(self) -> None:
        """Refuse options that another option makes meaningless."""
        if self.on_hardware and self.noise is not None:
            raise SituateError(
                "--noise: applies to simulated measurements only: leave it out with "
                "--evaluator hardware"
            )
        if self.clock is not None and self.controllers is None:
            raise SituateError("--clock: applies to several controllers: give --controllers too")
        if self.timeout is not None and not self.on_hardware:
            raise SituateError(
                "--timeout: applies with --evaluator hardware only: leave it out, or give that too"
            )

    def check(self, methods: Sequence[str], objective: str) -> None:
        """Check that the methods take these options.

        Raises:
            SituateError: none of them does, or one learns and cannot plan for the objective.
        """
        from situate.solvers import LEARNERS

        self._check_weights(methods)
        learners = [method for method in methods if method in LEARNERS]
        if not learners:
            self._check_unused(methods)
        elif objective != "time":
            raise SituateError(
                f"method {learners[0]!r} learns from step times: it cannot plan for {objective}"
            )

    def check_files(self) -> None:
        """Check that curves and TensorBoard logs can be written.

        Raises:
            MissingExtra: the package that writes them is not installed.
            SituateError: the picture has an unknown format, or the folder takes no files.
        """
        from situate.cli.outputs import check_picture, check_tensorboard

        check_picture(self.curves, "curves")
        check_tensorboard(self.tensorboard)

    def _check_weights(self, methods: Sequence[str]) -> None:
        from situate.solvers import WITH_WEIGHTS

        if self.weights is not None and not set(methods) & set(WITH_WEIGHTS):
            raise SituateError(
                "--weights: none of the methods has a pre-trained network; methods that do: "
                f"{', '.join(WITH_WEIGHTS)}"
            )

    def _check_unused(self, methods: Sequence[str]) -> None:
        from situate.solvers import LEARNERS, WITH_SETTINGS, WITH_WEIGHTS, WITH_WORKERS

        takers = {
            "samples": ("random",),
            "settings": WITH_SETTINGS,
            "weights": WITH_WEIGHTS,
            "workers": WITH_WORKERS,
        }
        who = f"method {methods[0]!r} does not learn"
        for option, value in vars(self).items():
            if value is not None and not set(takers.get(option, ())) & set(methods):
                raise SituateError(
                    f"--{option}: {who if len(methods) == 1 else 'none of the methods learns'} "
                    f"from measurements; methods that do: {', '.join(LEARNERS)}"
                )

    @property
    def on_hardware(self) -> bool:
        """True if placements run on real devices."""
        return self.evaluator == "hardware"

    @property
    def steps(self) -> "Steps | None":
        """The steps of one measurement by workers on hardware; None for the evaluator's own."""
        from situate.evaluators.steps import Steps

        return Steps() if self.settings == "paper" else None

    def budget(self, method: str, methods: Sequence[str], budget: SearchBudget) -> SearchBudget:
        """The budget of one of several methods.

        Methods that learn, and `random` beside them, measure the same number of placements. With
        `samples` and several methods, the time limit does not apply to them.
        """
        from situate.solvers import LEARNERS
        from situate.solvers.learned.driver import SAMPLES

        by_samples = self.samples is not None or any(name in LEARNERS for name in methods)
        if method not in LEARNERS and not (method == "random" and by_samples):
            return budget
        samples = self.samples or SAMPLES
        if budget.evaluations is not None:
            samples = min(samples, budget.evaluations)
        free = self.samples is not None and len(methods) > 1
        return replace(budget, evaluations=samples, time_limit=None if free else budget.time_limit)

    def learning(self, study: Path | None = None, machine: "Evaluator | None" = None) -> "Learning":
        """The settings of a solver that learns."""
        from situate.solvers.learned.learner import Learning

        return Learning(
            settings=cast("Settings", self.settings or "tuned"),
            grouping=self.grouping,
            groups=self.groups,
            noise=self.noise or 0.0,
            study=study,
            evaluator=machine,
            workers=None if self.on_hardware else self.workers,  # the machine has its own
            controllers=self.controllers,
            clock="wall" if self.clock == "wall" else None,
            stalest=self.stalest,
        )

    def of_search(self, method: str) -> "Learning":
        """The settings, weights and workers of a method that does not learn, if it takes any."""
        from situate.solvers import WITH_SETTINGS, WITH_WEIGHTS, WITH_WORKERS
        from situate.solvers.learned.learner import Learning

        settings = self.settings if method in WITH_SETTINGS else None
        weights = self.weights if method in WITH_WEIGHTS else None
        workers = self.workers if method in WITH_WORKERS else None
        return Learning(
            settings=cast("Settings", settings or "tuned"), weights=weights, workers=workers
        )


@option_class
class ComparisonLearningOptions(LearningOptions):
    """The options of several methods, whose studies share a folder."""

    study: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of studies, one per method, that record every measurement; the same "
            "command resumes them.",
        ),
    ] = None

    def study_of(self, method: str) -> Path | None:
        """The study of one method, in a folder that is created; None if it does not learn."""
        from situate.solvers import LEARNERS

        if self.study is None or method not in LEARNERS:
            return None
        Path(self.study).mkdir(parents=True, exist_ok=True)
        return Path(self.study, f"{method}.study")

    def check_files(self) -> None:
        """Check that curves, TensorBoard logs and studies can be written; raises as its base."""
        from situate.cli.outputs import check_folder

        super().check_files()
        check_folder(self.study)
