"""Small models and homes for tests of planning, and all layouts of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from situate.language.cache import CacheOptions
from situate.language.config import config_of
from situate.language.home import Home, Processor
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel
from situate.language.planning.planner import Planner
from situate.language.planning.workload import Workload
from situate.language.reading import model_of_config

MIXTURE: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 4096,
    "max_position_embeddings": 8192,
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 512,
}
DENSE: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "intermediate_size": 4096,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 4096,
    "max_position_embeddings": 8192,
}
GIB = 2**30


def small_model(mixture: bool = True, quant: str = "Q4_K_M", layers: int = 4) -> LanguageModel:
    """A model of a few layers; in Q4_K_M these have two sizes."""
    values = (MIXTURE if mixture else DENSE) | {"num_hidden_layers": layers}
    return model_of_config(config_of(values), quant, "small")


def home_with(*gpus: tuple[float, float, float], host: tuple[float, float] = (8, 50)) -> Home:
    """A home of GPUs with memory in GiB, bandwidth in GB/s and a link in GB/s."""
    accelerators = tuple(
        Processor(f"gpu{i}", memory * GIB, speed * 1e9, speed * 5e10, 3e-5)
        for i, (memory, speed, _) in enumerate(gpus)
    )
    cpu = Processor("cpu", host[0] * GIB, host[1] * 1e9, 1e12, 2e-4, cores=8)
    links = [link for _, _, link in gpus]
    count = len(gpus) + 1
    bandwidth = [
        [
            float("inf") if i == j else 1e9 * min((*links, 99.0)[i], (*links, 99.0)[j])
            for j in range(count)
        ]
        for i in range(count)
    ]
    latency = [[0.0 if i == j else 1e-5 for j in range(count)] for i in range(count)]
    rows = tuple(map(tuple, bandwidth)), tuple(map(tuple, latency))
    return Home("home", accelerators, cpu, *rows)


def planner_of(model: LanguageModel, home: Home, **values: Any) -> Planner:
    """A planner of a short request."""
    options = CacheOptions(values.pop("tokens", 1024))
    work = Workload(values.pop("prompt", 600), values.pop("reply", 60), **values)
    return Planner(model, home, options, work, ubatches=(512, 128), divided=False)


@st.composite
def homes(draw: st.DrawFn, most: int = 3) -> Home:
    """Homes of up to three GPUs; most do not hold the small models."""
    gpus = draw(
        st.lists(
            st.tuples(
                st.sampled_from([0.06, 0.07, 0.075, 0.08, 0.09, 0.2]),
                st.sampled_from([200.0, 400.0, 1000.0]),
                st.sampled_from([1.0, 4.0, 25.0]),
            ),
            min_size=1,
            max_size=most,
        )
    )
    return home_with(*gpus, host=(8, draw(st.sampled_from([20.0, 80.0]))))


def all_layouts(model: LanguageModel, gpus: int, ubatches: Sequence[int]) -> Iterator[Layout]:
    """Every layout whose experts are with their layers or on the host."""
    count = len(model.layers)
    orders = (order for n in range(gpus + 1) for order in itertools.permutations(range(gpus), n))
    for order in orders:
        for ends in itertools.combinations_with_replacement(range(count + 1), len(order)):
            layers: list[int] = []
            for device, end in zip((HOST, *order), (*ends, count), strict=True):
                layers += [device] * (end - len(layers))
            if not order:
                layers = [HOST] * count
            yield from _variants(model, order, tuple(layers), ubatches)


def _variants(
    model: LanguageModel, order: tuple[int, ...], layers: tuple[int, ...], ubatches: Sequence[int]
) -> Iterator[Layout]:
    free = [i for i, layer in enumerate(model.layers) if layer.experts and layers[i] != HOST]
    for away in itertools.product([False, True], repeat=len(free)):
        moved = {i for i, gone in zip(free, away, strict=True) if gone}
        experts = tuple(HOST if i in moved else device for i, device in enumerate(layers))
        for output in (HOST, *order):
            for ubatch, cache, offload in itertools.product(ubatches, (False, True), (False, True)):
                yield Layout(order, layers, experts, output, cache, "layer", ubatch, offload)
