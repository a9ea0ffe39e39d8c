"""The words of a command line of llama.cpp: flags with and without values (`common/arg.cpp`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from situate.errors import SituateError, nearest

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
    *("-md", "--model-draft", "-devd", "--device-draft", "-ngld", "--gpu-layers-draft"),
    *("--spec-type", "--spec-draft-n-max", "--spec-draft-n-min", "--draft-max", "--draft-min"),
    *("-p", "--prompt", "-f", "--file", "--predict", "--n-predict", "-to", "--timeout"),
)
"""Flags with a value that has no part in a layout."""

OTHER_SWITCHES = (
    *("--no-mmap", "--mmap", "--mlock", "--jinja", "--no-warmup", "--metrics", "-v", "--verbose"),
    *("--no-webui", "-cb", "--cont-batching", "--repack", "--no-repack", "-nr", "--no-host"),
)
"""Flags without a value that has a part in a layout."""


@dataclass(frozen=True)
class Words:
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


def read_words(text: str) -> Words:
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
    return Words(values, frozenset(switches), tuple(overrides))


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
