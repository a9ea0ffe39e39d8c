"""Flags of llama.cpp as a layout, by its own rules of which tensor goes where.

Rules: `src/llama-model.cpp` (`load_tensors`: layers, output), `src/llama-model-loader.cpp`
(overrides of single tensors) and `common/arg.cpp` (names) in llama.cpp.
"""

from __future__ import annotations

import re
import shlex
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from situate.errors import SituateError, nearest
from situate.language.cache import CacheOptions
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel, Layer

EXPERTS = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps"
"""The pattern by which `--cpu-moe` finds the tensors of experts."""

DEFAULT_UBATCH, DEFAULT_BATCH = 512, 2048

ALIASES: Mapping[str, tuple[str, ...]] = {
    "-ngl": ("--gpu-layers", "--n-gpu-layers"),
    "-ts": ("--tensor-split",),
    "-sm": ("--split-mode",),
    "-mg": ("--main-gpu",),
    "-dev": ("--device",),
    "-ot": ("--override-tensor",),
    "-ncmoe": ("--n-cpu-moe",),
    "-c": ("--ctx-size",),
    "-ub": ("--ubatch-size",),
    "-b": ("--batch-size",),
    "-np": ("--parallel",),
    "-ctk": ("--cache-type-k",),
    "-ctv": ("--cache-type-v",),
}
"""Flags with a value that a layout depends on."""

SWITCHES: Mapping[str, tuple[str, ...]] = {
    "-cmoe": ("--cpu-moe",),
    "-nkvo": ("--no-kv-offload",),
    "-kvo": ("--kv-offload",),
    "--no-op-offload": (),
    "--op-offload": (),
    "-kvu": ("--kv-unified",),
    "--no-kv-unified": ("-no-kvu",),
    "--swa-full": (),
}
"""Flags without a value that a layout depends on."""

OTHER_VALUES = (
    *("-m", "--model", "-t", "--threads", "-tb", "--threads-batch", "--host", "--port", "-a"),
    *("--alias", "-fa", "--flash-attn", "-fit", "--fit", "-fitt", "--fit-target", "--temp", "-n"),
    *("--top-k", "--top-p", "--min-p", "-s", "--seed", "--api-key", "--chat-template", "-hf"),
    *("--reasoning-format", "--numa", "--prio", "--poll", "--rope-scaling", "--rope-scale"),
    *("-p", "--prompt", "-f", "--file", "--predict", "--n-predict", "-to", "--timeout"),
)
"""Flags with a value that has no part in a layout."""

OTHER_SWITCHES = (
    *("--no-mmap", "--mmap", "--mlock", "--jinja", "--no-warmup", "--metrics", "-v", "--verbose"),
    *("--no-webui", "-cb", "--cont-batching", "--repack", "--no-repack", "-nr", "--no-host"),
)
"""Flags without a value that has a part in a layout."""

DEVICE_NAME = re.compile(r"(?:CUDA|ROCm|HIP|Vulkan|SYCL|Metal|MTL|GPU|RPC)(\d+)", re.IGNORECASE)


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
class _Words:
    """The flags of a command line by their short names."""

    values: Mapping[str, str]
    switches: frozenset[str]
    overrides: tuple[tuple[str, str], ...]

    def number(self, name: str, default: int, least: int = 0) -> int:
        text = self.values.get(name)
        if text is None:
            return default
        if not re.fullmatch(r"-?\d{1,9}", text) or int(text) < least:
            raise SituateError(f"--flags: {name} {text!r}: must be a number from {least} on")
        return int(text)


def parse_flags(
    text: str,
    model: LanguageModel,
    names: Sequence[str],
    memory: Sequence[float],
    defaults: CacheOptions,
) -> Launch:
    """The layout that llama.cpp would make of a command line.

    Args:
        text: flags, as typed behind `llama-server`.
        model: the model.
        names: of the GPUs; `CUDA0` and the like also name them, by their numbers.
        memory: (GPUs,) free bytes, by which llama.cpp divides layers without `-ts`.
        defaults: context, slots and types of the cache, where the flags do not say.

    Raises:
        SituateError: a flag is unknown, or its value cannot be.
    """
    words = _read(text)
    gpus = _devices(words, names)
    ubatch = words.number("-ub", DEFAULT_UBATCH, 1)
    options = _options(words, ubatch, defaults)
    layers, output = _layers(words, model, gpus, memory)
    experts, output, moved = _overridden(words, model, layers, output, names)
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
    note = f"speeds are as if {len(moved)} tensors moved by -ot lay with most of their layer"
    return Launch(layout, options, (note,) if moved else ())


def _options(words: _Words, ubatch: int, defaults: CacheOptions) -> CacheOptions:
    return CacheOptions(
        words.number("-c", 0) or defaults.context,
        words.values.get("-ctk", defaults.key_type).upper(),
        words.values.get("-ctv", defaults.value_type).upper(),
        ubatch,
        words.number("-np", defaults.slots, 1),
        "-kvu" in words.switches,
        "--swa-full" in words.switches,
    )


def _read(text: str) -> _Words:
    """
    Raises:
        SituateError: quotes are open, a flag is unknown, or its value is missing.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SituateError(f"--flags: {error}") from None
    groups = (*ALIASES.items(), *SWITCHES.items())
    short = {alias: name for name, others in groups for alias in others}
    values: dict[str, str] = {}
    switches: set[str] = set()
    overrides: list[tuple[str, str]] = []
    if words and not words[0].startswith("-"):
        words.pop(0)  # the program
    while words:
        word, sign, value = words.pop(0).partition("=")
        name = short.get(word, word)
        if name in SWITCHES or word in OTHER_SWITCHES:
            switches.add(name)
        elif name in ALIASES or word in OTHER_VALUES:
            if not sign and not words:
                raise SituateError(f"--flags: {word} has no value")
            value = value if sign else words.pop(0)
            values[name] = value
            if name == "-ot":
                overrides += _patterns(value)
        else:
            raise SituateError(f"--flags: unknown flag {word!r}{_hint(word)}")
    return _Words(values, frozenset(switches), tuple(overrides))


def _hint(word: str) -> str:
    names = [*ALIASES, *SWITCHES, *(name for group in ALIASES.values() for name in group)]
    hint = nearest(word, names)
    return hint if "did you mean" in hint else ""


def _patterns(text: str) -> Iterator[tuple[str, str]]:
    """The pairs of a pattern and a buffer in `-ot`.

    Raises:
        SituateError: an entry has no buffer, or its pattern is no regular expression.
    """
    for entry in text.split(","):
        pattern, sign, buffer = entry.rpartition("=")
        if not sign or not pattern:
            raise SituateError(f"--flags: -ot {entry!r}: must be PATTERN=BUFFER, as in exps=CPU")
        try:
            re.compile(pattern)
        except re.error as error:
            raise SituateError(f"--flags: -ot {pattern!r}: {error}") from None
        yield pattern, buffer


def _device(name: str, names: Sequence[str]) -> int:
    """A device's number by a backend's name for it or by its own, or `HOST`.

    Raises:
        SituateError: no device has that name.
    """
    if name.upper() in ("CPU", "CUDA_HOST", "HOST"):
        return HOST
    if name in names:
        return list(names).index(name)
    match = DEVICE_NAME.fullmatch(name)
    if match and int(match[1]) < len(names):
        return int(match[1])
    count = f"the cluster has {len(names)} GPUs"
    raise SituateError(f"--flags: unknown device {name!r}: {count}: {', '.join(names)}")


def _devices(words: _Words, names: Sequence[str]) -> list[int]:
    """GPUs in the order of `-dev`, or the main one alone with `-sm none`."""
    text = words.values.get("-dev")
    gpus = list(range(len(names)))
    if text is not None:
        gpus = [] if text == "none" else [_device(name, names) for name in text.split(",")]
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
    words: _Words, model: LanguageModel, gpus: Sequence[int], memory: Sequence[float]
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
    ends[-1:] = [1.0] if ends else []
    devices = [HOST] * (count + 1 - active)
    devices += [gpus[bisect_right(ends, i / active)] for i in range(active)]
    return devices[: model.sizes.layers], devices[-1]


def _shares(words: _Words, gpus: Sequence[int], memory: Sequence[float]) -> list[float]:
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
    words: _Words, model: LanguageModel, layers: Sequence[int], output: int, names: Sequence[str]
) -> tuple[list[int], int, list[tuple[str, int]]]:
    """The devices of experts and of the output after `-ot`, and the tensors that lie elsewhere."""
    rules = [(re.compile(p), _device(buffer, names)) for p, buffer in words.overrides]
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
