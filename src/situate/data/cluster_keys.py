"""The keys of a cluster's TOML file: each error names the key, its unit and an example."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from situate.errors import ClusterError, nearest


class Scale(NamedTuple):
    """The values that a real machine may have, and one of them in the words of data sheets."""

    unit: str
    of_sheets: str
    least: float = 0.0
    below: float = math.inf


class Key(NamedTuple):
    """The types of TOML that a key takes, their meaning, and an example.

    Attributes:
        value_key: of a table, the key of its values.
    """

    types: tuple[type, ...]
    meaning: str
    example: str
    needed: bool = False
    scale: Scale | None = None
    value_key: Key | None = None


NUMBER = (int, float)

NO_UNIT = 'if the figures have no unit, write unit = "" at the top of the file'
"""The remedy for figures that no real machine has."""

RATE = Key(NUMBER, "FLOP a second", "35.6e12", scale=Scale("FLOP/s", "35.6 TFLOP/s", least=1e6))
FRACTION = Key(NUMBER, "a fraction of the peak", "0.7")

FILE = {
    "name": Key((str,), "a text", '"two"', needed=True),
    "description": Key((str,), "a text", '"a 24 GB and a 12 GB card"'),
    "unit": Key((str,), "s or nothing", '""'),
    "transfers": Key((str,), "a text", '"overlapped"'),
    "synchronisation": Key(NUMBER, "seconds", "20e-6"),
    "devices": Key(
        (list,), "entries that begin with [[devices]]", '[{ name = "gpu0" }]', needed=True
    ),
    "links": Key(
        (list,),
        "entries that begin with [[links]]",
        '[{ from = "*", to = "*", bandwidth = 12e9 }]',
    ),
}

DEVICE = {
    "name": Key((str,), "a text", '"gpu0"', needed=True),
    "count": Key((int,), "a whole number", "2"),
    "kind": Key((str,), "a text", '"gpu"'),
    "model": Key((str,), "a text", '"RTX 3090"'),
    "memory": Key((int, float, str), "bytes or a text", '"24 GiB"'),
    "flops": Key((dict,), "FLOP a second by dtype", "{ float32 = 35.6e12 }", value_key=RATE),
    "bandwidth": Key(NUMBER, "bytes a second", "936e9", scale=Scale("B/s", "936 GB/s", least=1e6)),
    "launch": Key(NUMBER, "seconds", "6e-6", scale=Scale("s", "6 us", below=1.0)),
    "efficiency": Key(
        (dict,), "fractions of the peak by op class", "{ matmul = 0.7 }", value_key=FRACTION
    ),
    "threads": Key((int,), "a whole number", "8"),
}

LINK = {
    "from": Key((str,), "the name of devices", '"gpu*"', needed=True),
    "to": Key((str,), "the name of devices", '"gpu*"', needed=True),
    "bandwidth": Key(
        NUMBER, "bytes a second", "12e9", needed=True, scale=Scale("B/s", "12 GB/s", least=1e5)
    ),
    "latency": Key(NUMBER, "seconds", "20e-6", scale=Scale("s", "20 us", below=1.0)),
    "channel": Key((str,), "a text", '"{from} up"'),
    "both": Key((bool,), "true or false", "true"),
}


def check_keys(file: Mapping[str, Any]) -> None:
    """Check a parsed cluster file: known keys, with values of the right type and a plausible size.

    Raises:
        ClusterError: names the entry and the key.
    """
    _check_entry(file, FILE, "", False)
    unit = file.get("unit", "s")
    if unit not in ("s", ""):
        raise ClusterError(_must_be("unit", FILE["unit"], unit))
    for name, keys in (("devices", DEVICE), ("links", LINK)):
        for i, entry in enumerate(file.get(name, [])):
            if not isinstance(entry, dict):
                raise ClusterError(_must_be(f"{name}[{i}]", FILE[name], entry))
            _check_entry(entry, keys, f"{name}[{i}]", unit == "")


def _check_entry(
    entry: Mapping[str, Any], keys: Mapping[str, Key], where: str, unitless: bool
) -> None:
    at = f"{where}: " if where else ""
    for name in entry:
        if name not in keys:
            raise ClusterError(f"{at}unknown key {name!r}{nearest(name, keys)}")
    for name, key in keys.items():
        if key.needed and name not in entry:
            raise ClusterError(f"{at}no {name}: add {name} = {key.example}")
    times_alone = entry.get("bandwidth") == math.inf  # times of graphs that have no unit
    for name, value in entry.items():
        place = f"{where}.{name}" if where else name
        _check_value(value, keys[name], place, times_alone, unitless)


def _check_value(value: object, key: Key, where: str, times_alone: bool, unitless: bool) -> None:
    if type(value) not in key.types:
        raise ClusterError(_must_be(where, key, value))
    if key.value_key and isinstance(value, dict):
        for name, one in value.items():
            _check_value(one, key.value_key, f"{where}.{name}", times_alone, unitless)
    if unitless:
        return
    if key.scale and isinstance(value, NUMBER) and not (times_alone and key.scale.unit == "s"):
        _check_scale(value, key, key.scale, where)


def _check_scale(value: float, key: Key, scale: Scale, where: str) -> None:
    """Raise for a value in another unit; negative ones and NaN are errors of other kinds."""
    if 0 < value < scale.least or scale.below <= value <= sys.float_info.max:
        raise ClusterError(
            f"{where}: {value:g} {scale.unit}: {key.meaning} are meant, such as {key.example} for "
            f"{scale.of_sheets}; {NO_UNIT}"
        )


def _must_be(where: str, key: Key, value: object) -> str:
    return f"{where}: must be {key.meaning}, such as {key.example}, got {repr(value)[:80]}"
