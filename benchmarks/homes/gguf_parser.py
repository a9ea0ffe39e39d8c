"""Memory of a GPU by the formulas of gguf-parser (gpustack/gguf-parser-go).

The tool estimates the memory of a layout (`file_estimate__llamacpp.go`), here with flash attention;
it places nothing. Layers are placed in proportion to the GPUs' memory, as many as fit by its
formulas.
"""

from __future__ import annotations

from dataclasses import replace

from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel, Layer
from situate.language.planning.planner import HomePlan, Planner
from situate.language.planning.rivals import proportional_layout

PLATFORM = 250 * 2**20
"""Bytes of a GPU beside the estimate, by default."""

UBATCH = 512


def gguf_parser_plan(planner: Planner) -> HomePlan | None:
    """The layout with the most layers on GPUs whose estimates fit; None if the home has no GPU."""
    gpus = planner.home.accelerators

    def fits(layout: Layout) -> bool:
        needs = estimates(planner, layout)
        return all(need <= gpu.memory for need, gpu in zip(needs, gpus, strict=True))

    layout = proportional_layout(planner, fits) if gpus else None
    return None if layout is None else planner.priced(layout)


def estimates(planner: Planner, layout: Layout) -> list[float]:
    """(GPUs,) estimated bytes; the layout's experts are with their layers."""
    model, options = planner.model, replace(planner.options, ubatch=UBATCH)
    width, vocabulary = model.sizes.width, model.sizes.vocabulary
    several, on_host = len(planner.home.accelerators) > 1, layout.layers.count(HOST)
    # Inputs have copies for several GPUs: two of a mixture of experts, four of other models.
    copies = (2 if model.sizes.experts else 4) if several else 1
    inputs = copies * 4 * UBATCH * (width + 1 + options.cells)
    last = model.layers[-1]
    keys = last.cache.bytes(replace(options, slots=1, unified=True))
    compute = max(_attention(last, options.cells, width) + keys, _feed_forward(model, last))
    result = []
    for gpu in range(len(planner.home.accelerators)):
        members = [
            layer for layer, at in zip(model.layers, layout.layers, strict=True) if at == gpu
        ]
        need = float(PLATFORM + inputs + compute)
        need += sum(layer.size + layer.cache.bytes(options) for layer in members)
        if gpu == 0 and on_host > 1:
            need += keys
        if layout.output == gpu:
            matrices = model.output if not model.tied else (*model.output, *model.embedding)
            need += sum(weight.size for weight in matrices)
            need += 2 * 4 * UBATCH * (width + vocabulary)
        result.append(need if members or layout.output == gpu else 0.0)
    return result


def _attention(layer: Layer, cells: int, width: int) -> int:
    """The mask, normed activations, and (as the tool counts) the matrix of queries."""
    queries = sum(w.size for w in layer.weights if ".attn_q." in w.name or ".attn_q_b." in w.name)
    return 2 * UBATCH * cells + 4 * UBATCH * width + queries


def _feed_forward(model: LanguageModel, layer: Layer) -> int:
    """Activations of the norms, of the gate and of the hidden units, or of a mixture's experts."""
    width, experts = model.sizes.width, layer.experts
    hidden = [
        w.shape[-1] for w in layer.weights if w.name.endswith(("ffn_gate.weight", "ffn_up.weight"))
    ]
    size = 4 * UBATCH * (2 * width + sum(hidden))
    if experts is not None:
        size += 4 * experts.count * (width + UBATCH) + 4 * UBATCH * width * experts.used
    return size
