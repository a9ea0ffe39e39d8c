"""Megatron-LM's functional tests, whose golden values have the memory of their last rank.

The table of measurements has sizes and degrees; the other settings are read from the name of a
test, as its `model_config.yaml` has them. The tokenizer is that of GPT-2, padded to 128 times the
tensor parallelism.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from situate.language.hyperparameters import Experts
from situate.language.training.layout import Layout, Run
from situate.language.training.recipes import RECIPES
from situate.language.training.software import SOFTWARE
from situate.language.training.transformer import Transformer, transformer_of_sizes

GPT2_VOCABULARY = 50257


@dataclass(frozen=True)
class MegatronTest:
    """A test.

    Attributes:
        model, run: what it trains.
        precise: the kernel of its attention is known.
    """

    model: Transformer
    run: Run
    precise: bool


def megatron_test(row: Mapping[str, str]) -> MegatronTest | None:
    """The test of a row; None if its model is no decoder of equal layers."""
    return None
