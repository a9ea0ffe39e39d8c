"""The choice of cuts of ops for a cluster; docs/cuts.md describes it."""

from situate.solvers.cut_choice.choose import CutChoice, CutStep, choose_cuts

__all__ = ["CutChoice", "CutStep", "choose_cuts"]
