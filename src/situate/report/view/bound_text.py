"""A lower bound in words: its statement and its argument."""

from __future__ import annotations

from situate.data.problem import Problem
from situate.report.units import value_text

ARGUMENTS = {
    "critical path": "The longest chain of dependent ops, each on its best device, with the "
    "transfers that the chain cannot avoid.",
    "load": "The ops' work, divided over the devices as evenly as speed and memory allow.",
    "window": "Many ops that can neither start early nor end late must all run in the time "
    "between.",
    "narrow work": "Ops that only some devices can run must run there one after the other.",
    "colocation group": "The ops of one group share a device, so they run one after the other.",
    "together": "Ops whose transfer would take too long share a device and run there in turn.",
    "joins": "Where branches meet, their ops either share a device or wait for transfers.",
    "deadline": "A shorter step was assumed and led to a contradiction.",
    "split": "Blocking transfers stop both devices, and dividing the work needs such transfers.",
    "longest op": "No step can be shorter than its longest op.",
    "CP-SAT": "The solver CP-SAT excluded every better plan.",
}
"""The argument of each bound, by its name in docs/bounds.md."""

OF_MEMORY = "The bytes that must be held at once, on the devices that can hold them."
NO_BOUND = "Bounds hold for plans that fit, and say nothing about others."
UNNAMED = "The file of a plan holds the bound's value and not its name; see docs/bounds.md."
"""The argument of a bound that could not be named."""


def bound_text(
    problem: Problem, value: float | None, lower_bound: float | None, name: str | None
) -> dict[str, object]:
    """A plan's lower bound: its value, the plan's value, their texts, and the argument.

    Args:
        value, lower_bound: of the plan; None where it has none.
        name: of the bound; None where unknown.
    """
    if lower_bound is None:
        return {"statement": "There is no lower bound.", "argument": NO_BOUND}
    unit, objective = problem.graph.unit, problem.objective
    text = value_text(lower_bound, objective, unit)
    of_memory = OF_MEMORY if objective == "memory" else ""
    return {
        "value": lower_bound,
        "plan": value,
        "text": text,
        "plan_text": value_text(value or 0.0, objective, unit),
        "name": name or "",
        "statement": f"No plan that fits has a smaller value than {text}.",
        "argument": UNNAMED if name is None else ARGUMENTS.get(name, of_memory),
    }
