"""The choice of a sharding: one strategy for each op, of least cost, within a limit of memory."""

from situate.sharding.iopddl import is_sharding_problem, read_sharding_problem
from situate.sharding.problem import ShardingProblem
from situate.sharding.solve import ShardingPlan, solve_sharding

__all__ = [
    "ShardingPlan",
    "ShardingProblem",
    "is_sharding_problem",
    "read_sharding_problem",
    "solve_sharding",
]
