"""Decoders of transformers: language models from left to right."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.corpus.configuration import Configuration, tokenized, transformers_models


def causal(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Sentences that are their own labels."""
    words = tokenized(config)
    return words | {"labels": words["input_ids"]} if training else words


def configurations() -> list[Configuration]:
    """All of this module."""
    return transformers_models("decoders", globals())
