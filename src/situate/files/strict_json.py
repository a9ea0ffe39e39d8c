"""Strict reading of JSON (no unknown or duplicate keys, no NaN), and writing of JSON."""

from __future__ import annotations

import json
import mmap
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from situate.errors import ReadError
from situate.files.contents import one_line, text

T = TypeVar("T")

Keys = Mapping[str, msgspec.Raw]
"""The result of `top_level`."""

CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Bytes that text never holds; a protocol buffer may begin with a brace."""

BYTES_OF_A_CHARACTER = 8
"""Least bytes of memory of a graph's objects for each character of its file."""


def top_level(data: bytes) -> dict[str, msgspec.Raw]:
    """The keys of the object that the content is, with their unparsed values; empty if the content
    does not begin like a JSON object.

    Raises:
        ReadError: it begins like one and is not one.
    """
    if not re.match(rb"(\xef\xbb\xbf)?\s*\{", data) or CONTROL.search(data[:4096]):
        return {}
    return decode(data, dict[str, msgspec.Raw], unique=False)


def decode(data: bytes, kind: type[T], unique: bool = True) -> T:
    """The content as an object of type `kind`.

    Raises:
        ReadError: names the place of the fault.
        OSError: there is no memory for it.
    """
    document = text(data)
    _check_memory(BYTES_OF_A_CHARACTER * len(document))
    with _readable():
        value = msgspec.json.decode(document, type=kind)
        if unique:
            # msgspec takes the last of two equal keys silently, and only the standard parser shows
            # both.
            content = json.loads(document, object_pairs_hook=_check_keys)
            _check_format(content, kind)
    return value


def _check_memory(size: int) -> None:
    """Raise OSError if the system does not give this process so much memory; msgspec would end the
    process silently. Pages that are never written take no memory."""
    mmap.mmap(-1, max(size, 1)).close()


def _check_format(value: dict[str, Any], kind: Any) -> None:
    """Refuse a missing format or version. msgspec accepts it, because there is only one format, and
    the version has a default."""
    config = getattr(kind, "__struct_config__", None)
    if config and config.tag_field:
        versions = [field for field in kind.__struct_fields__ if field == "version"]
        for field in (config.tag_field, *versions):
            if field not in value:
                raise ReadError(f"object missing required field {field}")


@contextmanager
def _readable() -> Iterator[None]:
    """Errors of the parsers as ReadErrors."""
    try:
        yield
    except ReadError:
        raise
    except RecursionError:
        raise ReadError("the JSON is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise ReadError(_place_first(str(error))) from None
    except ValueError as error:
        raise ReadError(f"is not valid JSON: {error}") from None


def _place_first(message: str) -> str:
    """From "Expected `int`, got `str` - at `$.ops[3].flops`" to
    "ops[3].flops: expected int, got str". Keys and values come from the file."""
    message = one_line(message)
    match = re.fullmatch(r"(.*?)(?: - at `\$\.?(.*)`)?", message, re.DOTALL)
    problem, place = match.groups() if match else (message, None)
    problem = problem[:1].lower() + problem[1:].replace("`", "")
    return f"{place}: {problem}" if place else problem


def _check_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A hook of the parser: the object as a dictionary."""
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        key = next(key for key, count in counts.items() if count > 1)
        where = f"object {value['name']!r}" if "name" in value else "an object"
        raise ReadError(f"{where} has the key {key!r} twice")
    return value


# JSON whose strings are safe inside a script element of a web page too.
def json_bytes(value: object) -> bytes:
    """Indented JSON of `value`, ending in a line feed; `</` is written `<\\/`."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=1)
    return text.replace(b"</", rb"<\/") + b"\n"


# Numbers of numpy arrays, for hashes and files.
def plain(value: object) -> object:
    """A numpy scalar as a Python number: the `enc_hook` of msgspec, which encodes only these.

    Raises:
        NotImplementedError: it is something else; msgspec asks for this error.
    """
    item = getattr(value, "item", None)
    if item is None:
        raise NotImplementedError(f"cannot encode a {type(value).__name__}")
    return item()
