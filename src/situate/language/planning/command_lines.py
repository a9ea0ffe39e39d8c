"""A layout as command lines and configuration of llama.cpp, ik_llama.cpp and other engines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from situate.errors import PlanError
from situate.language.cache import CacheOptions
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel
from situate.language.planning.flags import DEFAULT_BATCH

OUTPUT, EMBEDDING = r"^output\.weight", r"^token_embd\.weight"
"""Patterns of the output's matrix, which in a tied model is the embedding."""


def _device_names(layout: Layout, backend: str = "CUDA") -> list[str]:
    """The backend's names of the GPUs in use."""
    return [f"{backend}{gpu}" for gpu in layout.order]


def flags(
    layout: Layout, options: CacheOptions, model: LanguageModel, gpus: int, backend: str = "CUDA"
) -> list[str]:
    """A layout as flags of llama.cpp, which `flags.parse_flags` reads back.

    Args:
        layout: where everything is.
        options: of the cache.
        model: its layers.
        gpus: number of GPUs of the machine.
        backend: the beginning of GPUs' names in llama.cpp.
    """
    return [
        *_devices(layout, gpus, backend),
        *_split(layout, model),
        *_experts(layout, model, backend),
        *_output(layout, model, backend),
        *_cache(layout, options),
        *(() if layout.op_offload else ("--no-op-offload",)),
    ]


def _devices(layout: Layout, gpus: int, backend: str) -> list[str]:
    if layout.order == tuple(range(gpus)):
        return []
    return ["-dev", ",".join(_device_names(layout, backend)) or "none"]


def _split(layout: Layout, model: LanguageModel) -> list[str]:
    """Layers are divided in proportion to `-ts`; integers of their sum give exact counts."""
    last = layout.split_output
    # llama.cpp counts layers for guesses at further tokens too, which it loads on request only.
    drafts = (last,) * model.sizes.draft_layers
    places = [device for device in (*layout.layers, *drafts, last) if device != HOST]
    words = ["-ngl", str(len(places))]
    if len(layout.order) > 1 and places:
        shares = [places.count(gpu) for gpu in layout.order]
        words += ["-ts", ",".join(map(str, shares))]
    if layout.split == "tensor":
        words += ["-sm", "tensor"]
    return words


def _output(layout: Layout, model: LanguageModel, backend: str) -> list[str]:
    if layout.output == layout.split_output:
        return []
    pattern = EMBEDDING if model.tied else OUTPUT
    return ["-ot", f"{pattern}={_buffer(layout.output, backend)}"]


def _experts(layout: Layout, model: LanguageModel, backend: str) -> list[str]:
    """Flags for experts away from their layers."""
    away: dict[int, list[int]] = {}
    mixtures = [i for i, layer in enumerate(model.layers) if layer.experts is not None]
    for i in mixtures:
        if layout.experts[i] != layout.layers[i]:
            away.setdefault(layout.experts[i], []).append(i)
    words: list[str] = []
    for device, numbers in away.items():
        leading = [i for i in mixtures if i <= numbers[-1]]
        resident = [i for i in leading if i not in numbers and layout.layers[i] != HOST]
        if device == HOST and not resident:
            everything = all(layout.experts[i] == HOST for i in mixtures)
            words += ["-cmoe"] if everything else ["-ncmoe", str(numbers[-1] + 1)]
        else:
            layers = "|".join(map(str, numbers))
            words += ["-ot", rf"blk\.({layers})\.ffn_.*_exps={_buffer(device, backend)}"]
    return words


def _cache(layout: Layout, options: CacheOptions) -> list[str]:
    words = ["-c", str(options.context), "-np", str(options.slots), "-ub", str(layout.ubatch)]
    if layout.ubatch > DEFAULT_BATCH:
        words += ["-b", str(layout.ubatch)]
    for flag, kind in (("-ctk", options.key_type), ("-ctv", options.value_type)):
        if kind != "F16":
            words += [flag, kind.lower()]
    switches = (
        ("-nkvo", layout.host_cache),
        ("-kvu", options.unified),
        ("--swa-full", options.full_window),
    )
    return words + [flag for flag, on in switches if on]


def _buffer(device: int, backend: str) -> str:
    return "CPU" if device == HOST else f"{backend}{device}"


@dataclass(frozen=True)
class Export:
    """A layout to write for an engine.

    Attributes:
        layout, options, model: as in `flags`.
        gpus: number of GPUs of the machine.
        path: of the model's file.
        memory: (GPUs,) bytes to use of each GPU.
        more: further flags of llama.cpp.
        backend: the beginning of GPUs' names in llama.cpp.
    """

    layout: Layout
    options: CacheOptions
    model: LanguageModel
    gpus: int
    path: str
    memory: Sequence[float]
    more: tuple[str, ...] = ()
    backend: str = "CUDA"

    @property
    def flags(self) -> list[str]:
        """Flags of llama.cpp."""
        line = flags(self.layout, self.options, self.model, self.gpus, self.backend)
        return [*line, *self.more]

    @property
    def host_parts(self) -> bool:
        """True if some layer or expert is in host memory."""
        return HOST in (*self.layout.layers, *self.layout.experts)


def _llamacpp(export: Export) -> str:
    """The command of llama.cpp's server."""
    return shlex.join(["llama-server", "-m", export.path, *export.flags])


def _ik_llamacpp(export: Export) -> str:
    """The command of ik_llama.cpp's server.

    Raises:
        PlanError: every matrix is divided, which ik_llama.cpp does by rules of its own.
    """
    if export.layout.split == "tensor":
        raise PlanError("ik_llama.cpp divides matrices by -sm graph, which situate does not plan")
    words = [word for word in export.flags if word not in ("-kvu", "--swa-full")]
    long = {"-ncmoe": ["--n-cpu-moe"], "-cmoe": ["--cpu-moe"], "--no-op-offload": ["-op", "-1,0"]}
    return shlex.join(
        ["llama-server", "-m", export.path, *(w for word in words for w in long.get(word, [word]))]
    )


def _llama_swap(export: Export) -> str:
    """An entry of llama-swap's configuration, in YAML."""
    command = ["llama-server", "-m", export.path, *export.flags]
    name = json.dumps(export.model.name)
    # JSON's strings are YAML's; ${PORT} is llama-swap's own.
    text = json.dumps(shlex.join(command) + " --port ${PORT}")
    return f"models:\n  {name}:\n    cmd: {text}"


def _ollama(export: Export) -> str:
    """The lines of a Modelfile for ollama.

    Raises:
        PlanError: ollama has no setting for the layout.
    """
    layout, options = export.layout, export.options
    away = [i for i, (a, b) in enumerate(zip(layout.layers, layout.experts, strict=True)) if a != b]
    if away or layout.split == "tensor" or layout.host_cache:
        raise PlanError(
            "ollama puts whole layers on GPUs and has no setting for experts, for the cache or for "
            "divided matrices: export to llamacpp"
        )
    offloaded = sum(device != HOST for device in (*layout.layers, layout.output))
    lines = [
        f"# CUDA_VISIBLE_DEVICES={','.join(map(str, layout.order))}",
        f"FROM {export.path}",
        f"PARAMETER num_ctx {options.cells}",
        f"PARAMETER num_gpu {offloaded}",
        f"PARAMETER num_batch {layout.ubatch}",
    ]
    if options.key_type != "F16":
        lines.insert(1, f"# OLLAMA_KV_CACHE_TYPE={options.key_type.lower()}")
    return "\n".join(lines)


def _vllm(export: Export) -> str:
    """The command of vLLM, with its variables.

    Raises:
        PlanError: some weights are in host memory.
    """
    layout = _on_gpus(export, "vLLM")
    environment = [f"CUDA_VISIBLE_DEVICES={','.join(map(str, layout.order))}"]
    words = ["vllm", "serve", export.path, "--max-model-len", str(export.options.cells)]
    words += ["--max-num-batched-tokens", str(layout.ubatch)]
    words += ["--max-num-seqs", str(export.options.slots)]
    if layout.split == "tensor":
        words += ["--tensor-parallel-size", str(len(layout.order))]
    elif len(layout.order) > 1:
        counts = ",".join(str(layout.layers.count(gpu)) for gpu in layout.order)
        environment.append(f"VLLM_PP_LAYER_PARTITION={counts}")
        words += ["--pipeline-parallel-size", str(len(layout.order))]
    return " ".join([*environment, shlex.join(words)])


def _exllama(export: Export) -> str:
    """The lines of TabbyAPI's configuration for exllamav3: GB of each GPU.

    Raises:
        PlanError: some weights are in host memory.
    """
    layout = _on_gpus(export, "exllamav3")
    shares = [round(export.memory[i] / 2**30, 2) for i in range(export.gpus)]
    split = [share if i in layout.order else 0 for i, share in enumerate(shares)]
    lines = [
        "model:",
        f"  max_seq_len: {export.options.cells}",
        f"  cache_size: {export.options.cells * export.options.slots}",
        f"  chunk_size: {layout.ubatch}",
    ]
    if layout.split == "tensor":
        lines.append("  tensor_parallel: true")
    return "\n".join([*lines, "  gpu_split_auto: false", f"  gpu_split: {json.dumps(split)}"])


def _on_gpus(export: Export, engine: str) -> Layout:
    if export.host_parts or not export.layout.order:
        raise PlanError(
            f"{engine} keeps all layers on GPUs, and the plan has some in host memory: export to "
            "llamacpp, or plan a smaller type"
        )
    return export.layout


ENGINES: Mapping[str, Callable[[Export], str]] = {
    "llamacpp": _llamacpp,
    "ik_llamacpp": _ik_llamacpp,
    "llama-swap": _llama_swap,
    "ollama": _ollama,
    "vllm": _vllm,
    "exllama": _exllama,
}
"""Writers by the name of an engine."""
