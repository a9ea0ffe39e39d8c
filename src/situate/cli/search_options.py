"""Options of a search: its problem, its budget, and the files it writes."""

from collections.abc import Iterable
from typing import Annotated

import typer

from situate.cli import names
from situate.cli.language.options import LANGUAGE_OBJECTIVES
from situate.cli.option_groups import OMITTED, After, option_class
from situate.cli.options import (
    Cluster,
    Costs,
    Json,
    Objective,
    PlannedCluster,
    Rules,
    Seed,
    Threads,
    seconds,
)
from situate.errors import SituateError

Method = Annotated[
    str,
    typer.Option(
        help="Method of planning; 'situate methods' lists them.",
        autocompletion=names.complete(names.methods),
    ),
    After("objective"),
]


@option_class
class ProblemOptions:
    """The problem to plan, without its model, as typed.

    Raises:
        SituateError: the objective or the rules do not exist.
    """

    cluster: Cluster = None
    costs: Costs = None
    objective: Objective = "time"
    rules: Rules = None

    def __post_init__(self) -> None:
        from situate.cli.names import find_objective
        from situate.data.rules import find_rules

        if self.objective not in LANGUAGE_OBJECTIVES:
            find_objective(self.objective)
        if self.rules is not None:
            find_rules(self.rules)


@option_class
class ExplainedProblemOptions(ProblemOptions):
    """The problem of a plan, or of a model to plan."""

    cluster: PlannedCluster = None


@option_class
class SearchBudget:
    """Limits of a search, and its seed; None as in `solve`.

    Raises:
        SituateError: a negative time limit, or less than one evaluation.
    """

    time_limit: Annotated[
        float | None,
        typer.Option(
            parser=seconds,
            metavar="SECONDS",
            help="Seconds that planning may take after the model is read. Default: 10, or no limit "
            "with --evaluations.",
        ),
    ] = None
    evaluations: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of plans to try; without a time limit the same seed gives the same plan.",
        ),
    ] = None
    seed: Seed = 0
    threads: Threads = None
    progress: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the progress of the search there, which 'situate view --serve FILE' shows "
            "live.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.time_limit is not None and not self.time_limit >= 0:
            raise SituateError(f"--time-limit: must not be negative, got {self.time_limit}")
        if self.evaluations is not None and self.evaluations < 1:
            raise SituateError(f"--evaluations: must be at least 1, got {self.evaluations}")


@option_class
class OutputOptions:
    """The files that a command writes, and the form of its answer.

    Raises:
        SituateError: the picture has an unknown format, or the report another ending than .html.
    """

    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write the plan, as JSON.")] = None
    picture: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the plan, as .svg or .png.")
    ] = None
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="FILE",
            help="Write every op and transfer with its devices, start and end, as JSON.",
        ),
    ] = None
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write a report for the browser, as .html: timeline, memory, modules, links.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print a forecast of each device's memory and of the step's time, with its error, "
            "instead of the search's figures.",
        ),
    ] = False
    as_json: Json = False

    def check(self, inputs: Iterable[str | None], *others: str | None) -> None:
        """Check that all files can be written, these and others of the command.

        Raises:
            SituateError: a file cannot be written, or is also an input or another output.
        """
        from situate.cli.outputs import check_outputs, check_picture, check_report

        check_outputs(inputs, [self.out, self.picture, self.schedule, self.report, *others])
        check_picture(self.picture)
        check_report(self.report)


@option_class
class ComparisonOutputs(OutputOptions):
    """The files that `compare` writes."""

    dry_run: Annotated[bool, OMITTED] = False


@option_class
class ExplanationOutputs(OutputOptions):
    """The files that `explain` writes."""

    out: Annotated[str | None, OMITTED] = None
    dry_run: Annotated[bool, OMITTED] = False
