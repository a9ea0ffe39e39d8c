"""The table of methods. A new method is one record here and one file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from situate.policies.installed import check_torch

if TYPE_CHECKING:
    from situate.solvers.learned.learner import MakeLearner
    from situate.solvers.search import Search

Kind = Literal["heuristic", "portfolio", "partitioner", "search", "exact", "learner"]
"""A list rule; a sequence of several methods; a graph partitioner; a search over decisions; a
search that ends with a proof; or a method that learns from measured step times."""

PYTORCH = "PyTorch: pip install 'situate[torch]'"
PYMETIS = "pymetis: pip install 'situate[baselines]'"
HIGHS = "HiGHS: pip install 'situate[baselines]'"
SCOTCH = "Scotch: apt-get install scotch"
ORTOOLS = "OR-tools: pip install 'situate[exact]'"


@dataclass(frozen=True)
class Method:
    """A planning method.

    Attributes:
        name: as `solve` and `--method` take it.
        kind: see `Kind`.
        module: its module in `situate.solvers`, and behind a colon its function: `run(search)`, or
            for a learner a `MakeLearner`.
        summary: the method in a line.
        paper: authors, venue and year of its paper; empty if there is none.
        extra: the package that it needs besides situate, and how to install it; empty for none.
        told_costs: True if it reads the durations of ops and transfers from the problem. Other
            methods see only measured times of whole steps. `Result.knows` says whether their
            groups were made with op durations.
        has_settings: True if it takes `Learning.settings` but does not learn.
        asynchronous: True if several controllers may learn its policy, see `Learning.controllers`.
        has_weights: True if it takes `Learning.weights`.
        of_slices: True if it only plans steps of slices.
        of_parts: True if it only plans steps whose ops are cut.
        has_workers: True if it takes `Learning.workers` but does not learn.
        has_release: True if it has the settings of its paper's released code.
    """

    name: str
    kind: Kind
    module: str
    summary: str
    paper: str = ""
    extra: str = ""
    told_costs: bool = True
    has_settings: bool = False
    asynchronous: bool = False
    has_weights: bool = False
    of_slices: bool = False
    of_parts: bool = False
    has_workers: bool = False
    has_release: bool = False

    @property
    def learns(self) -> bool:
        """True if the method asks for measurements and learns from them."""
        return self.kind == "learner"

    def run(self, search: Search) -> None:
        """Search until the budget ends, with a method that does not learn.

        Raises:
            MissingExtra: a package that the method needs is not installed.
            SituateError: the method does not apply to the problem.
        """
        self.function()(search)

    def learner(self) -> MakeLearner:
        """The function that makes the learner of a method that learns;
        `situate.solvers.learned.driver.learn` runs it."""
        make: MakeLearner = self.function()
        return make

    def function(self) -> Callable[..., Any]:
        """The function that implements the method; its module is imported now.

        Raises:
            MissingExtra: the method needs PyTorch, and it is not installed.
        """
        if self.extra == PYTORCH:
            check_torch(*(("safetensors",) if self.has_weights else ()))
        module, _, function = self.module.partition(":")
        implementation: Callable[..., Any] = getattr(
            import_module(f"situate.solvers.{module}"), function
        )
        return implementation


def _learner(
    name: str,
    module: str,
    summary: str,
    paper: str = "",
    extra: str = "",
    asynchronous: bool = False,
    has_release: bool = False,
) -> Method:
    return Method(
        name,
        "learner",
        module,
        summary,
        paper,
        extra,
        told_costs=False,
        asynchronous=asynchronous,
        has_release=has_release,
    )


BAECHI = "Jeon et al., Baechi, SoCC 2020"
REGAL = "Paliwal et al., REGAL, ICLR 2020"
ZERO_BUBBLE = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024"
POST = "Gao, Chen and Li, Post, NeurIPS 2018"

_ALL = (
    Method(
        "single",
        "heuristic",
        "heuristics.baselines:single",
        "everything on one device, the best one",
    ),
    Method(
        "expert",
        "heuristic",
        "heuristics.baselines:expert",
        "the placement by hand that the papers describe for their networks",
    ),
    Method(
        "random",
        "search",
        "heuristics.baselines:random_search",
        "the best of many placements and orders drawn uniformly",
    ),
    Method(
        "topological",
        "heuristic",
        "heuristics.fills:topological",
        "fill the devices in order, each up to its share of the bytes",
    ),
    Method(
        "pipeline",
        "heuristic",
        "heuristics.pipeline:run",
        "the network in contiguous stages, one an accelerator, each with its backward pass",
    ),
    Method(
        "data_parallel",
        "heuristic",
        "heuristics.data_parallel:data_parallel",
        "the whole model on every accelerator, on slices of the batch in shares by speed",
        of_slices=True,
    ),
    Method(
        "fsdp",
        "heuristic",
        "heuristics.data_parallel:fsdp",
        "equal slices of the batch and an equal share of the parameters on every accelerator",
        paper="Zhao et al., PyTorch FSDP, VLDB 2023; Rajbhandari et al., ZeRO, SC 2020",
        of_slices=True,
    ),
    Method(
        "tensor_parallel",
        "heuristic",
        "heuristics.tensor_parallel:run",
        "the parts of every op on a team of accelerators, slices or stages on each team",
        paper="Shoeybi et al., Megatron-LM, 2019; Narayanan et al., SC 2021",
        of_parts=True,
    ),
    Method(
        "gpipe",
        "heuristic",
        "heuristics.pass_schedules:gpipe",
        "slices through stages, one an accelerator: all of them forward, then all of them back",
        paper="Huang et al., GPipe, NeurIPS 2019",
        of_slices=True,
    ),
    Method(
        "one_f_one_b",
        "heuristic",
        "heuristics.pass_schedules:one_f_one_b",
        "slices through stages, a forward and a backward pass by turns, with few slices in flight",
        paper="Narayanan et al., PipeDream-Flush, ICML 2021",
        of_slices=True,
    ),
    Method(
        "interleaved",
        "heuristic",
        "heuristics.pass_schedules:interleaved",
        "the same with two to four short stages on every accelerator",
        paper="Narayanan et al., Megatron-LM, SC 2021",
        of_slices=True,
    ),
    Method(
        "zero_bubble",
        "heuristic",
        "heuristics.pass_schedules:zero_bubble",
        "ZB-H1: as one_f_one_b, and gradients of weights run where it would wait",
        paper=ZERO_BUBBLE,
        of_slices=True,
    ),
    Method(
        "zero_bubble_h2",
        "heuristic",
        "heuristics.pass_schedules:zero_bubble_h2",
        "ZB-H2: the same without any waiting, in twice the activation memory",
        paper=ZERO_BUBBLE,
        of_slices=True,
    ),
    Method(
        "heft",
        "heuristic",
        "heuristics.list_rules:heft",
        "heterogeneous earliest finish time: the most urgent op first, where it ends first",
        paper="Topcuoglu, Hariri and Wu, IEEE TPDS 13(3), 2002",
    ),
    Method(
        "etf",
        "heuristic",
        "heuristics.list_rules:etf",
        "earliest task first: of all ready ops and devices the pair that can start first",
        paper="Hwang, Chow, Anger and Lee, SIAM J. Computing 18(2), 1989",
    ),
    Method(
        "m_topo",
        "heuristic",
        "heuristics.fills:m_topo",
        "Baechi's m-TOPO: fill the accelerators in order, each up to its share of all bytes",
        paper=BAECHI,
    ),
    Method(
        "m_etf",
        "heuristic",
        "heuristics.list_rules:m_etf",
        "Baechi's m-ETF: earliest task first, of the pairs of op and accelerator that fit",
        paper=BAECHI,
    ),
    Method(
        "m_sct",
        "heuristic",
        "heuristics.list_rules:m_sct",
        "Baechi's m-SCT: as m_etf, and devices wait for the favourite children of their ops",
        paper=BAECHI,
        extra=HIGHS,
    ),
    Method(
        "local_search",
        "search",
        "local_search.greedy:run",
        "greedy moves of one op to another device or place in the order, from random plans",
        paper=REGAL,
    ),
    Method(
        "justification",
        "search",
        "local_search.justification:run",
        "list schedules from the end and from the beginning in turns, of orders changed at random",
        paper="Valls, Ballestín and Quintanilla, Justification and RCPSP, EJOR 2005",
    ),
    Method(
        "auto",
        "portfolio",
        "auto:run",
        "the best plan of simple rules, improved by local search until the budget ends",
        has_workers=True,
    ),
    Method(
        "brkga",
        "search",
        "evolutionary.brkga:brkga",
        "a biased random-key genetic algorithm over placements and priorities",
        paper="Gonçalves and Resende, J. Heuristics 17, 2011; Paliwal et al., REGAL, ICLR 2020",
        has_settings=True,
    ),
    Method(
        "tuned_brkga",
        "search",
        "evolutionary.brkga:tuned_brkga",
        "the same with the settings that a grid search found",
        paper="Paliwal et al., REGAL, ICLR 2020",
        has_settings=True,
    ),
    Method(
        "regal",
        "search",
        "evolutionary.regal.regal:regal",
        "the same where a constant or a trained graph network proposes which keys are likely",
        paper=REGAL,
        has_settings=True,
        has_weights=True,
    ),
    Method(
        "gas",
        "search",
        "evolutionary.regal.regal:gas",
        "as regal, where a recurrent network reads the ops one after the other",
        paper=REGAL,
        extra=PYTORCH,
        has_weights=True,
    ),
    Method(
        "idrs",
        "search",
        "evolutionary.regal.regal:idrs",
        "random chromosomes of what regal's network proposes, none of which are bred",
        paper=REGAL,
        extra=PYTORCH,
        has_settings=True,
        has_weights=True,
    ),
    _learner(
        "hill_climbing",
        "local_search.hill_climbing:learner",
        "moves blocks of groups, large and small, and keeps what is no slower",
    ),
    _learner(
        "policy_gradient",
        "learned.post:policy_gradient",
        "one step along the policy gradient after every 12 samples (REINFORCE)",
        paper=POST,
    ),
    _learner(
        "ppo",
        "learned.post:ppo",
        "proximal policy optimisation of a softmax a group",
        paper=POST,
    ),
    _learner(
        "cross_entropy",
        "learned.post:cross_entropy",
        "cross-entropy minimisation of a softmax a group",
        paper=POST,
    ),
    _learner(
        "post",
        "learned.post:post",
        "cross-entropy minimisation joined with proximal policy optimisation",
        paper=POST,
    ),
    _learner(
        "spotlight",
        "learned.spotlight:learner",
        "proximal policy optimisation of a sequence-to-sequence policy",
        paper="Gao, Chen and Li, Spotlight, ICML 2018",
        extra=PYTORCH,
    ),
    _learner(
        "colocrl",
        "learned.colocrl:learner",
        "policy gradient of a sequence-to-sequence policy",
        paper="Mirhoseini et al., Device Placement Optimization with Reinforcement Learning, "
        "ICML 2017",
        extra=PYTORCH,
        asynchronous=True,
    ),
    _learner(
        "hierarchical",
        "learned.hierarchical:learner",
        "a grouper and a placer that learn together",
        paper="Mirhoseini, Goldie et al., A Hierarchical Model for Device Placement, ICLR 2018",
        extra=PYTORCH,
        asynchronous=True,
        has_release=True,
    ),
    Method(
        "metis",
        "partitioner",
        "partitioners.metis:run",
        "as many balanced parts as accelerators, with few bytes between them",
        paper="Karypis and Kumar, SIAM J. Scientific Computing 20(1), 1998",
        extra=PYMETIS,
    ),
    Method(
        "partition_dfs",
        "partitioner",
        "partitioners.partition_dfs:run",
        "Kernighan and Lin's partition with few bytes across, ops in XLA's depth-first order",
        paper=REGAL,
    ),
    Method(
        "scotch",
        "partitioner",
        "partitioners.scotch:scotch",
        "Scotch's static mapping of the graph onto the machine, CPUs and all",
        paper="Pellegrini and Roman, HPCN Europe 1996",
        extra=SCOTCH,
    ),
    Method(
        "mincut",
        "partitioner",
        "partitioners.scotch:mincut",
        "Scotch's static mapping of the graph onto the accelerators alone",
        paper="Pellegrini and Roman, HPCN Europe 1996",
        extra=SCOTCH,
    ),
    Method(
        "cp_sat",
        "exact",
        "exact.cp_sat:run",
        "constraint programming by OR-tools' CP-SAT, whose bound certifies small plans",
        paper="the baseline of Paliwal et al., REGAL, ICLR 2020",
        extra=ORTOOLS,
    ),
)

METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _ALL})
"""All methods by name, in the order in which lists show them."""

WITH_SETTINGS = tuple(method.name for method in _ALL if method.learns or method.has_settings)
"""Names of the methods that take settings."""

OF_SLICES = tuple(method.name for method in _ALL if method.of_slices)
"""The names of methods that plan steps of slices alone."""

OF_PARTS = tuple(method.name for method in _ALL if method.of_parts)
"""The names of methods that plan steps of cut ops alone."""

WITH_WEIGHTS = tuple(method.name for method in _ALL if method.has_weights)
"""Names of the methods that take trained weights."""

WITH_WORKERS = tuple(method.name for method in _ALL if method.learns or method.has_workers)
"""Names of the methods that take workers."""

LEARNERS = tuple(method.name for method in _ALL if method.learns)
"""Names of the methods that learn from measured step times."""
