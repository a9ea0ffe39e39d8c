"""Flags of llama.cpp as a layout, by its own rules of which tensor goes where.

Rules: `src/llama-model.cpp` (`load_tensors`: layers, output), `src/llama-model-loader.cpp`
(overrides of single tensors) and `common/arg.cpp` (names) in llama.cpp.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from situate.errors import SituateError
from situate.language.cache import CacheOptions
from situate.language.expert_kinds import expert_kind
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel, Layer
from situate.language.planning.flag_words import Words, read_words

EXPERTS = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps"
"""The pattern by which `--cpu-moe` finds the tensors of experts."""

DEFAULT_UBATCH, DEFAULT_BATCH = 512, 2048

DEVICE_NAME = re.compile(r"(CUDA|ROCm|HIP|Vulkan|SYCL|Metal|MTL|GPU|RPC)(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Launch:
    """A model's layout with the size and types of its cache.

    Attributes:
        layout: which device holds which part.
        options: of the cache.
        notes: differences between the flags and the layout that stands for them.
    """

    layout: Layout
    options: CacheOptions
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Machine:
    """The GPUs by their names.

    Attributes:
        names: (GPUs,) in the cluster file.
        devices: (GPUs,) in llama.cpp; none if numbers alone count.
    """

    names: tuple[str, ...]
    devices: tuple[str, ...]

    def number(self, name: str) -> int:
        """A device's number by one of its names, or `HOST`.

        Raises:
            SituateError: no device has that name.
        """
        if name.upper() in ("CPU", "CUDA_HOST", "HOST"):
            return HOST
        for names in (self.names, self.devices):
            if name in names:
                return names.index(name)
        match = DEVICE_NAME.fullmatch(name)
        # Names of another backend stand for the same GPUs.
        own = match and any(device.startswith(match[1]) for device in self.devices)
        if match and not own and int(match[2]) < len(self.names):
            return int(match[2])
        count = f"the cluster has {len(self.names)} GPUs"
        raise SituateError(f"--flags: unknown device {name!r}: {count}: {', '.join(self.names)}")


def parse_flags(
    text: str,
    model: LanguageModel,
    names: Sequence[str],
    memory: Sequence[float],
    defaults: CacheOptions,
    devices: Sequence[str] = (),
) -> Launch:
    """The layout that llama.cpp would make of a command line.

    Args:
        text: flags, as typed behind `llama-server`.
        model: the model.
        names: of the GPUs; `CUDA0` and the like also name them, by their numbers.
        memory: (GPUs,) free bytes, by which llama.cpp divides layers without `-ts`.
        defaults: context, slots and types of the cache, where the flags do not say.
        devices: (GPUs,) their names in llama.cpp; without any, the numbers in names count.

    Raises:
        SituateError: a flag is unknown, or its value cannot be.
    """
    words = read_words(text)
    machine = _Machine(tuple(names), tuple(devices))
    gpus = _devices(words, machine)
    ubatch = words.number("-ub", DEFAULT_UBATCH, 1)
    options = _options(words, ubatch, defaults)
    layers, output = _layers(words, model, gpus, memory)
    experts, output, moved = _overridden(words, model, layers, output, machine)
    layout = Layout(
        order=tuple(gpus),
        layers=tuple(layers),
        experts=tuple(experts),
        output=output,
        host_cache="-nkvo" in words.switches,
        split="tensor" if words.values.get("-sm") == "tensor" else "layer",
        ubatch=min(ubatch, words.number("-b", DEFAULT_BATCH, 1)),
        op_offload="--no-op-offload" not in words.switches,
        moved=tuple(moved),
    )
    dense = sum(not expert_kind(name) for name, _ in moved)
    note = f"speeds are as if {dense} tensors moved by -ot lay with most of their layer"
    return Launch(layout, options, (note,) if dense else ())


def _options(words: Words, ubatch: int, defaults: CacheOptions) -> CacheOptions:
    return CacheOptions(
        words.number("-c", 0) or defaults.context,
        words.values.get("-ctk", defaults.key_type).upper(),
        words.values.get("-ctv", defaults.value_type).upper(),
        ubatch,
        words.number("-np", defaults.slots, 1),
        "-kvu" in words.switches,
        "--swa-full" in words.switches,
    )


def _devices(words: Words, machine: _Machine) -> list[int]:
    """GPUs in the order of `-dev`, or the main one alone with `-sm none`."""
    text = words.values.get("-dev")
    gpus = list(range(len(machine.names)))
    if text is not None:
        gpus = [] if text == "none" else [machine.number(name) for name in text.split(",")]
    if HOST in gpus or len({*gpus}) < len(gpus):
        raise SituateError(f"--flags: -dev {text!r}: must name GPUs, each of them once")
    mode = words.values.get("-sm", "layer")
    if mode not in ("none", "layer", "tensor"):
        raise SituateError(f"--flags: -sm {mode!r}: must be layer, tensor or none")
    main = words.number("-mg", 0)
    if mode == "none" and gpus:
        if main >= len(gpus):
            raise SituateError(f"--flags: -mg {main}: there are {len(gpus)} GPUs")
        return [gpus[main]]
    return gpus


def _layers(
    words: Words, model: LanguageModel, gpus: Sequence[int], memory: Sequence[float]
) -> tuple[list[int], int]:
    """The device of each layer, and of the output, which counts as one more layer."""
    # llama.cpp counts layers for guesses at further tokens too.
    count = model.sizes.all_layers
    text = words.values.get("-ngl", "all")
    offloaded = count + 1 if text in ("all", "auto", "-1") else words.number("-ngl", 0)
    if not gpus:
        offloaded = 0
    active = min(offloaded, count + 1)
    shares = _shares(words, gpus, memory)
    ends = [end / sum(shares) for end in accumulate(shares)]
    # Rounding must not end the last GPU before the last layer.
    ends[-1:] = [1.0] if ends else []
    devices = [HOST] * (count + 1 - active)
    devices += [gpus[bisect_right(ends, i / active)] for i in range(active)]
    return devices[: model.sizes.layers], devices[-1]


def _shares(words: Words, gpus: Sequence[int], memory: Sequence[float]) -> list[float]:
    """
    Raises:
        SituateError: shares are no numbers, negative, all zero or too many.
    """
    text = words.values.get("-ts")
    if text is None:
        return [memory[gpu] for gpu in gpus]
    try:
        shares = [float(part) for part in re.split(r"[,/]", text) if part]
    except ValueError:
        shares = [-1.0]
    shares += [0.0] * (len(gpus) - len(shares))
    if len(shares) > len(gpus) and any(shares[len(gpus) :]):
        raise SituateError(f"--flags: -ts {text!r}: has more shares than the {len(gpus)} GPUs")
    shares = shares[: len(gpus)]
    if not all(0 <= share < 2**40 for share in shares) or (gpus and not sum(shares)):
        raise SituateError(f"--flags: -ts {text!r}: must be shares of the GPUs, such as 3,1")
    return shares


def _overridden(
    words: Words, model: LanguageModel, layers: Sequence[int], output: int, machine: _Machine
) -> tuple[list[int], int, list[tuple[str, int]]]:
    """The devices of experts and of the output after `-ot`, and the tensors that lie elsewhere."""
    rules = [(re.compile(p), machine.number(buffer)) for p, buffer in words.overrides]
    if "-cmoe" in words.switches:
        rules.append((re.compile(EXPERTS), HOST))
    rules += [
        (re.compile(rf"blk\.{i}{EXPERTS}"), HOST)
        for i in range(min(words.number("-ncmoe", 0), model.sizes.layers))
    ]
    if not rules:
        return list(layers), output, []

    def device(name: str, default: int) -> int:
        return next((there for rule, there in rules if rule.search(name)), default)

    experts: list[int] = []
    moved: list[tuple[str, int]] = []
    for layer, home in zip(model.layers, layers, strict=True):
        place, others = _of_layer(layer, home, device)
        experts.append(place)
        moved += others
    for weight in model.embedding:
        if (place := device(weight.name, HOST)) != HOST:
            moved.append((weight.name, place))
    for weight in model.embedding if model.tied else model.output:
        if weight.role in ("embedding", "output"):
            output = device(weight.name, output)
    for weight in model.output:
        if (place := device(weight.name, output)) != output:
            moved.append((weight.name, place))
    return experts, output, moved


def _of_layer(
    layer: Layer, home: int, device: Callable[[str, int], int]
) -> tuple[int, list[tuple[str, int]]]:
    """The device of most of a layer's experts, and the tensors that lie elsewhere."""
    sizes: Counter[int] = Counter()
    for weight in layer.weights:
        if weight.role == "experts":
            sizes[device(weight.name, home)] += weight.size
    place = sizes.most_common(1)[0][0] if sizes else home
    return place, [
        (weight.name, there)
        for weight in layer.weights
        for there in [device(weight.name, home)]
        if there != (place if weight.role == "experts" else home)
    ]
