"""Figures of A. Paliwal et al., REGAL, ICLR 2020."""

from __future__ import annotations

TABLE_1 = {
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
}
"""Per cent of improvement over BRKGA 5K, and of the gap from the best known, by set and method
(Table 1). CP-SAT ran for 24 hours."""
