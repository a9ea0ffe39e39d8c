"""A plan as a command line or configuration of llama.cpp, ik_llama.cpp and other engines."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from situate.errors import PlanError
from situate.language.cache import CacheOptions
from situate.language.compute_buffers import Build
from situate.language.layout import HOST, Layout
from situate.language.memory import device_memory, largest_upload
from situate.language.model import LanguageModel
from situate.language.planning.command_lines import flags
from situate.language.planning.workload import Drafting

VISIBLE = {
    "CUDA": "CUDA_VISIBLE_DEVICES",
    "ROCm": "HIP_VISIBLE_DEVICES",
    "Vulkan": "GGML_VK_VISIBLE_DEVICES",
    "SYCL": "ZE_AFFINITY_MASK",
}
"""Variables that restrict the GPUs of a backend."""


@dataclass(frozen=True)
class Export:
    """A layout to write for an engine.

    Attributes:
        layout, options, model, devices: as in `flags`.
        path: of the model's file.
        memory: (GPUs,) bytes to use of each GPU.
        drafting: a smaller model; None without one.
        names: (GPUs,) in the cluster file.
    """

    layout: Layout
    options: CacheOptions
    model: LanguageModel
    devices: Sequence[str]
    path: str
    memory: Sequence[float]
    drafting: Drafting | None = None
    names: Sequence[str] = ()

    @property
    def flags(self) -> list[str]:
        """Flags of llama.cpp."""
        line = flags(self.layout, self.options, self.model, self.devices)
        return [*line, *self._draft_flags("--spec-type", "draft-simple", "--spec-draft-n-max")]

    @property
    def ik_flags(self) -> list[str]:
        """Flags of ik_llama.cpp, by llama.cpp's names."""
        line = flags(self.layout, self.options, self.model, self.devices)
        return [*line, *self._draft_flags("--draft-max")]

    def _draft_flags(self, *words: str) -> list[str]:
        """The draft model with its device; the words precede its number of guesses."""
        drafting = self.drafting
        if drafting is None:
            return []
        place = ["-ngld", "0"]
        if drafting.device in self.names:
            # 99 layers are all of any draft.
            place = ["-devd", self.devices[list(self.names).index(drafting.device)], "-ngld", "99"]
        return ["-md", drafting.model, *place, *words, str(drafting.tokens)]

    @property
    def visible(self) -> str:
        """The variable that shows an engine the GPUs in use, such as `CUDA_VISIBLE_DEVICES=0,1`."""
        # A name such as CUDA0 is a backend with a number.
        pairs = [re.fullmatch(r"(.*?)(\d*)", self.devices[gpu]) for gpu in self.layout.order]
        backends = {pair[1]: VISIBLE.get(pair[1], VISIBLE["CUDA"]) for pair in pairs if pair}
        variable = next(iter(backends.values()), VISIBLE["CUDA"])
        return f"{variable}={','.join(pair[2] for pair in pairs if pair)}"

    @property
    def host_parts(self) -> bool:
        """True if some layer or expert is in host memory."""
        moved = (place for _, place in self.layout.moved)
        return HOST in (*self.layout.layers, *self.layout.experts, *moved)


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
    words = [word for word in export.ik_flags if word not in ("-kvu", "--swa-full")]
    long = {"-ncmoe": ["--n-cpu-moe"], "-cmoe": ["--cpu-moe"], "--no-op-offload": ["-op", "-1,0"]}
    return shlex.join(
        ["llama-server", "-m", export.path, *(w for word in words for w in long.get(word, [word]))]
    )


def ik_memory_note(export: Export) -> str:
    """A line about the memory of ik_llama.cpp, whose graph differs from llama.cpp's.

    Its buffers are counted by rules. An upload that finds no gap between them adds its whole size
    on the first GPU.
    """
    layout, gpus = export.layout, len(export.devices)
    build = Build("ik_llama.cpp")
    parts = device_memory(export.model, layout, export.options, gpus, build=build, growth=False)
    upload = largest_upload(export.model, layout)
    missing = []
    for gpu in layout.order:
        need = parts[gpu].total + parts[gpu].margin + (upload if gpu == layout.order[0] else 0)
        if need > export.memory[gpu]:
            lack = (need - export.memory[gpu]) / 2**20
            missing.append(f"{export.names[gpu]} may lack {lack:,.0f} MiB")
    rules = "they fit"
    if missing:
        rules = f"{', '.join(missing)}: keep more experts on the CPU, or take a smaller -ub"
    return f"ik_llama.cpp: buffers of its own graph are not replayed; by rules {rules}"


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
    if export.drafting is not None:
        raise PlanError("ollama has no setting for a draft model: export to llamacpp")
    if away or layout.moved or layout.split == "tensor" or layout.host_cache:
        raise PlanError(
            "ollama puts whole layers on GPUs and has no setting for experts, for the cache or for "
            "divided matrices: export to llamacpp"
        )
    offloaded = sum(device != HOST for device in (*layout.layers, layout.output))
    lines = [
        f"# {export.visible}",
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
    environment = [export.visible]
    words = ["vllm", "serve", export.path, "--max-model-len", str(export.options.cells)]
    words += ["--max-num-batched-tokens", str(layout.ubatch)]
    words += ["--max-num-seqs", str(export.options.slots)]
    if layout.split == "tensor":
        words += ["--tensor-parallel-size", str(len(layout.order))]
    elif len(layout.order) > 1:
        counts = ",".join(str(layout.layers.count(gpu)) for gpu in layout.order)
        environment.append(f"VLLM_PP_LAYER_PARTITION={counts}")
        words += ["--pipeline-parallel-size", str(len(layout.order))]
    if (drafting := export.drafting) is not None:
        guesses = {"model": drafting.model, "num_speculative_tokens": drafting.tokens}
        words += ["--speculative-config", json.dumps(guesses)]
    return " ".join([*environment, shlex.join(words)])


def _exllama(export: Export) -> str:
    """The lines of TabbyAPI's configuration for exllamav3: GB of each GPU.

    Raises:
        PlanError: some weights are in host memory.
    """
    layout = _on_gpus(export, "exllamav3")
    shares = [round(export.memory[i] / 2**30, 2) for i in range(len(export.devices))]
    split = [share if i in layout.order else 0 for i, share in enumerate(shares)]
    lines = [
        "model:",
        f"  max_seq_len: {export.options.cells}",
        f"  cache_size: {export.options.cells * export.options.slots}",
        f"  chunk_size: {layout.ubatch}",
    ]
    if layout.split == "tensor":
        lines.append("  tensor_parallel: true")
    lines += ["  gpu_split_auto: false", f"  gpu_split: {json.dumps(split)}"]
    if export.drafting is not None:
        lines += ["draft_model:", f"  draft_model_name: {json.dumps(export.drafting.model)}"]
    return "\n".join(lines)


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
