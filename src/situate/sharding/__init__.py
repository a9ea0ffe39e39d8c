"""The choice of a sharding: one strategy for each op, or stages of layers with their degrees."""

from situate.sharding.iopddl import is_sharding_problem, read_sharding_problem
from situate.sharding.piper import is_stage_problem, read_stage_problem
from situate.sharding.problem import ShardingProblem
from situate.sharding.solve import ShardingPlan, solve_sharding
from situate.sharding.stage_search import StagePlan, solve_stages
from situate.sharding.stages import Stage, StageProblem

__all__ = [
    "ShardingPlan",
    "ShardingProblem",
    "Stage",
    "StagePlan",
    "StageProblem",
    "is_sharding_problem",
    "is_stage_problem",
    "read_sharding_problem",
    "read_stage_problem",
    "solve_sharding",
    "solve_stages",
]
