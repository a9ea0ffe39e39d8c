"""Sizes and options of a sequence-to-sequence policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Score = Literal["additive", "general"]
"""The way attention compares, see `situate.policies.attention.Attention`."""


@dataclass(frozen=True)
class Shape:
    """The shape of `situate.policies.seq2seq.Placer`; the attributes mean what they mean there."""

    hidden: int = 64
    layers: int = 1
    score: Score = "additive"
    width: int = 32
    aligned: bool = False
