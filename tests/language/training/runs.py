"""Models, machines and runs for tests of training."""

from __future__ import annotations

from typing import Any

from situate.language.training.layout import Layout, LayoutTable, Run
from situate.language.training.machine import Machine, find_machine
from situate.language.training.recipes import find_recipe
from situate.language.training.transformer import (
    Sizes,
    Transformer,
    parse_sizes,
    transformer_of_sizes,
)

LLAMA_8B = parse_sizes("layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=128256")
MIXTRAL = parse_sizes("layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=32000,experts=8")
GPT = transformer_of_sizes(
    "gpt", Sizes(layers=12, hidden=512, heads=8, vocabulary=50304, gated=False, tied=True)
)


def run_of(recipe: str = "megatron", sequence: int = 4096, **degrees: Any) -> Run:
    """A run with these degrees."""
    return Run(Layout(**degrees), sequence, find_recipe(recipe, None, None))


def table_of(*layouts: dict[str, Any]) -> LayoutTable:
    """A table of layouts with these degrees."""
    return LayoutTable.of([Layout(**degrees) for degrees in layouts])


def h100(count: int = 8) -> Machine:
    """Nodes of eight H100."""
    return find_machine(f"{count}xH100")


def parameters(model: Transformer) -> float:
    """Elements of a model in billions."""
    return model.parameters / 1e9
