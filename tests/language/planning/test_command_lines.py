"""Layouts as flags: read back they are the same."""

from __future__ import annotations

import shlex

from hypothesis import given, settings
from hypothesis import strategies as st

from situate.language.cache import CacheOptions
from situate.language.expert_kinds import with_kinds
from situate.language.layout import HOST, Layout
from situate.language.planning.command_lines import flags
from situate.language.planning.flags import parse_flags
from tests.language.planning.homes import small_model

MODEL = small_model(layers=6)


@st.composite
def layouts(draw):
    gpus = draw(st.integers(1, 4))
    order = draw(
        st.permutations(range(gpus)).flatmap(
            lambda all_: st.integers(0, gpus).map(lambda n: tuple(all_[:n]))
        )
    )
    ends = sorted(draw(st.lists(st.integers(0, 6), min_size=len(order), max_size=len(order))))
    layers: list[int] = []
    for device, end in zip((HOST, *order), (*ends, 6), strict=True):
        layers += [device] * (end - len(layers))
    away = draw(st.lists(st.booleans(), min_size=6, max_size=6))
    experts = [HOST if gone else place for gone, place in zip(away, layers, strict=True)]
    layout = Layout(
        order,
        tuple(layers),
        tuple(experts),
        draw(st.sampled_from([HOST, *order])),
        draw(st.booleans()),
        draw(st.sampled_from(["layer", "tensor"])),
        draw(st.sampled_from([128, 512, 4096])),
        draw(st.booleans()),
    )
    for number in draw(st.lists(st.integers(0, 5), max_size=2)) if order else ():
        kinds = draw(st.frozensets(st.sampled_from(["gate", "up", "down"])))
        layout = with_kinds(MODEL, layout, number, kinds, order[0], HOST)
    return gpus, layout


# Writing a layout and reading its flags gives the layout.
@settings(max_examples=200, deadline=None)
@given(
    drawn=layouts(),
    slots=st.integers(1, 4),
    kind=st.sampled_from(["F16", "Q8_0"]),
    unified=st.booleans(),
)
def test_flags_say_the_layout(drawn, slots, kind, unified):
    gpus, layout = drawn
    options = CacheOptions(8192, kind, kind, layout.ubatch, slots, unified)
    line = shlex.join(flags(layout, options, MODEL, [f"CUDA{i}" for i in range(gpus)]))
    names = [f"card{i}" for i in range(gpus)]
    launch = parse_flags(line, MODEL, names, [1.0] * gpus, CacheOptions(1))
    assert launch.layout == layout
    assert launch.options == options
    assert launch.notes == ()
