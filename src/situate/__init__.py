"""Decides which device runs each op of a neural network, and in which order.

    graph = situate.read("model.json")
    problem = situate.Problem(graph, situate.Cluster.preset("k80-4"))
    result = situate.solve(problem, time_limit=10)
    result.plan.write("plan.json")

Times are seconds and sizes bytes, everywhere. Names load when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from situate.errors import (
    ClusterError,
    GraphError,
    MissingExtra,
    PlanError,
    ReadError,
    ScheduleError,
    SituateError,
)
from situate.version import VERSION as __version__

if TYPE_CHECKING:
    from situate import zoo
    from situate.data.cluster import Cluster, Device, Link
    from situate.data.costs import Costs
    from situate.data.graph import Graph, MachineDevice, Op, Tensor
    from situate.data.problem import OBJECTIVES, Problem
    from situate.data.rules import RULES, Rules
    from situate.evaluators.measurements import Evaluator, Measurements
    from situate.evaluators.simulated import SimulatedMachine
    from situate.host.discover import discover
    from situate.model import find_model
    from situate.readers import read
    from situate.report.explain import explain
    from situate.results.plan import Plan
    from situate.results.result import Progress, Result
    from situate.runtime.compile import compile
    from situate.schedule.schedule import Schedule
    from situate.solvers import METHODS, solve
    from situate.solvers.evaluate import evaluate
    from situate.solvers.learned.learner import Learner, Learning
    from situate.study import Study
    from situate.torch_capture import capture

__all__ = [
    "METHODS",
    "OBJECTIVES",
    "RULES",
    "Cluster",
    "ClusterError",
    "Costs",
    "Device",
    "Evaluator",
    "Graph",
    "GraphError",
    "Learner",
    "Learning",
    "Link",
    "MachineDevice",
    "Measurements",
    "MissingExtra",
    "Op",
    "Plan",
    "PlanError",
    "Problem",
    "Progress",
    "ReadError",
    "Result",
    "Rules",
    "Schedule",
    "ScheduleError",
    "SimulatedMachine",
    "SituateError",
    "Study",
    "Tensor",
    "__version__",
    "capture",
    "compile",
    "discover",
    "evaluate",
    "explain",
    "find_model",
    "read",
    "solve",
    "zoo",
]

_HOME = {
    "METHODS": "solvers",
    "OBJECTIVES": "data.problem",
    "RULES": "data.rules",
    "Cluster": "data.cluster",
    "Costs": "data.costs",
    "Device": "data.cluster",
    "Evaluator": "evaluators.measurements",
    "Graph": "data.graph",
    "Learner": "solvers.learned.learner",
    "Learning": "solvers.learned.learner",
    "Link": "data.cluster",
    "MachineDevice": "data.graph",
    "Measurements": "evaluators.measurements",
    "Op": "data.graph",
    "Plan": "results.plan",
    "Problem": "data.problem",
    "Progress": "results.result",
    "Result": "results.result",
    "Rules": "data.rules",
    "Schedule": "schedule.schedule",
    "SimulatedMachine": "evaluators.simulated",
    "Study": "study",
    "Tensor": "data.graph",
    "capture": "torch_capture",
    "compile": "runtime.compile",
    "discover": "host.discover",
    "evaluate": "solvers.evaluate",
    "explain": "report.explain",
    "find_model": "model",
    "read": "readers",
    "solve": "solvers",
}


def __getattr__(name: str) -> Any:
    if name == "zoo":
        return importlib.import_module("situate.zoo")
    if name not in _HOME:
        raise AttributeError(f"module 'situate' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"situate.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
