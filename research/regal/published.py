"""Figures of A. Paliwal et al., REGAL, ICLR 2020."""

from __future__ import annotations

Figures = tuple[float, float | None]

TABLE_1: dict[str, dict[str, Figures]] = {
    "synthetic_time": {
        "cp_sat": (19.50, 0.00),
        "partition_dfs": (-55.8, 93.66),
        "local_search": (0.08, 24.60),
        "brkga": (0.00, 24.63),
        "tuned_brkga": (3.11, 20.76),
        "gas": (0.80, 23.48),
        "idrs": (-12.12, 39.72),
        "regal": (4.81, 18.57),
    },
    "real_time": {
        "cp_sat": (15.85, 1.00),
        "partition_dfs": (-37.32, 66.98),
        "local_search": (-1.66, 22.63),
        "brkga": (0.00, 20.19),
        "tuned_brkga": (3.20, 16.40),
        "gas": (3.79, 15.24),
        "idrs": (-6.87, 28.60),
        "regal": (7.09, 11.04),
    },
    "real_memory": {
        "cp_sat": (-1.48, 8.06),
        "partition_dfs": (-6.51, 14.77),
        "local_search": (0.63, 7.24),
        "brkga": (0.00, 7.98),
        "tuned_brkga": (0.80, 7.11),
        "gas": (0.16, 7.67),
        "idrs": (-3.16, 12.39),
        "regal": (3.56, 4.44),
    },
    "larger_time": {"brkga": (0.00, None), "regal": (0.58, None)},
    "larger_memory": {"brkga": (0.00, None), "regal": (3.74, None)},
}
"""Per cent of improvement over BRKGA 5K, and of the gap from the best known, by set and method
(Table 1). CP-SAT ran for 24 hours. The last two sets are XLA's graphs, 94 and 32 of an order of
magnitude more ops than those that trained the policy (5.3)."""

EVALUATIONS = 5000
"""Evaluations of each method in Table 1 (5.2)."""

STEPS = 100_000
"""Steps of a training in the paper's settings (A.14, A.15)."""

IN_PAPER_SETTINGS = "_paper"
"""The end of the names of records whose weights learnt in the paper's settings."""


def set_of(name: str) -> str:
    """The set that a record is of."""
    return name.removesuffix(IN_PAPER_SETTINGS)


def table_1(name: str) -> dict[str, Figures]:
    """The paper's figures of the set that a record is of; none of other sets."""
    return TABLE_1.get(set_of(name), {})


NO_WORSE = {"real_time": 87.4, "real_memory": 88.9}
MOST = {"real_time": 26.0, "real_memory": 54.3}
LEAST = {"real_time": -24.0, "real_memory": -17.9}
"""By set, the per cent of graphs on which REGAL is no worse than BRKGA 5K, and its greatest and
least improvement (5.4, Fig. 2)."""

ENTROPY = 1.71
"""Mean entropy of placements on the real time set, in nats (5.5, Fig. 4a)."""

SECONDS = {
    "cp_sat": 7200.0,
    "partition_dfs": 144.0,
    "local_search": 122.0,
    "brkga": 0.89,
    "tuned_brkga": 1.04,
    "gas": 1.04,
    "regal": 1.04,
}
"""Seconds of a plan, on the real memory set (Table 3, which says about two hours of CP-SAT)."""

TABLE_4 = {
    "placement": (-0.4, -0.2),
    "scheduling": (4.4, 3.65),
    "placement and scheduling": (4.67, 3.56),
}
"""By kind of proposal, per cent of improvement for memory on validation and test sets."""
