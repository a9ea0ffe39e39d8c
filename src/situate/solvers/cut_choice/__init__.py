"""The choice of cuts of ops for a cluster; docs/cuts.md describes it."""

from situate.solvers.cut_choice.choose import CutChoice, choose_cuts
from situate.solvers.cut_choice.cut_step import CutStep

__all__ = ["CutChoice", "CutStep", "choose_cuts"]
