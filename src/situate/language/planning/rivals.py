"""Layouts by the rules of other tools and people, for comparison with a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from situate.language.layout import HOST, Layout
from situate.language.memory import DeviceMemory
from situate.language.planning.capacity import memory_of
from situate.language.planning.planner import HomePlan, Planner

FIT_MARGIN = 1024 * 2**20
"""Bytes that `--fit` leaves free on every device."""

Fits = Callable[[Layout], bool]


def rivals(planner: Planner) -> Iterator[tuple[str, HomePlan]]:
    """Layouts of other rules by name, where they fit."""
    if not planner.home.accelerators:
        return
    rules = (
        ("--fit", _fit_layout(planner)),
        ("by memory", proportional_layout(planner)),
        ("experts on CPU", _experts_on_cpu(planner)),
    )
    for name, layout in rules:
        if layout is not None:
            yield name, planner.priced(layout)


def _fit_layout(planner: Planner) -> Layout | None:
    """The rule of llama.cpp's `--fit` (`common/fit.cpp`), with whole layers.

    If the model does not fit as it is, a dense model is put on the GPUs from the last layer and the
    last GPU backwards. Of a mixture, the parts beside experts are placed so; then layers take
    their experts along, from the first layer and the first GPU on.
    """
    gpus = range(len(planner.home.accelerators))
    fits = _with_margin(planner, FIT_MARGIN)
    whole = _proportional(planner, len(planner.model.layers) + 1)
    if fits(whole):
        return whole
    mixtures = any(layer.experts for layer in planner.model.layers)
    layers = _backwards(planner, fits, list(gpus), mixtures)
    if not mixtures or HOST in layers:
        layout = _layout(planner, layers, mixtures)
        return layout if fits(layout) else None
    return _forwards(planner, fits, layers)


def proportional_layout(planner: Planner, fits: Fits | None = None) -> Layout | None:
    """As many layers on GPUs as fit, in proportion to their memory (llama.cpp's default `-ts`).

    Args:
        planner: with the model and the home.
        fits: whether a layout fits; by default by the planner's estimate of memory.
    """
    count = len(planner.model.layers) + 1
    fits = fits or _with_margin(planner, 0)
    return _most(lambda offloaded: _proportional(planner, offloaded), count, fits)


def _experts_on_cpu(planner: Planner) -> Layout | None:
    """All experts on the CPU, and layers on GPUs in proportion to memory (`-ot exps=CPU`)."""
    if not any(layer.experts for layer in planner.model.layers):
        return None
    fits = _with_margin(planner, 0)
    count = len(planner.model.layers) + 1

    def layout(offloaded: int) -> Layout:
        return _layout(planner, _proportional(planner, offloaded).layers, True)

    return _most(layout, count, fits)


def _with_margin(planner: Planner, margin: int) -> Fits:
    """Whether a layout leaves so many bytes free on every GPU in use, or the estimate's margin."""

    def enough(memory: float, part: DeviceMemory) -> bool:
        return part.total + (margin or part.margin) <= memory

    def fits(layout: Layout) -> bool:
        parts = memory_of(planner.model, layout, planner.options, planner.home)
        host = planner.home.host.memory
        return parts[HOST].total <= host and all(
            enough(planner.home.accelerators[gpu].memory, parts[gpu]) for gpu in layout.order
        )

    return fits


def _layout(planner: Planner, layers: Sequence[int], experts_away: bool) -> Layout:
    """A layout with llama.cpp's defaults, all GPUs in their order."""
    mixture = [layer.experts is not None for layer in planner.model.layers]
    experts = [HOST if experts_away and m else d for m, d in zip(mixture, layers, strict=True)]
    order = tuple(range(len(planner.home.accelerators)))
    output = layers[-1] if layers[-1] != HOST else HOST
    return Layout(order, tuple(layers), tuple(experts), output)


def _proportional(planner: Planner, offloaded: int) -> Layout:
    """So many layers, with the output as one of them, in proportion to the memory of GPUs."""
    memory = [gpu.memory for gpu in planner.home.accelerators]
    count, total = len(planner.model.layers), sum(memory)
    ends: list[float] = []
    for size in memory:
        ends.append((ends[-1] if ends else 0.0) + size / total)
    places = [HOST] * (count + 1 - offloaded)
    # Layer i is on the first GPU whose end, as a share of all, is above i / offloaded.
    for i in range(offloaded):
        places.append(next((g for g, end in enumerate(ends) if end > i / offloaded), len(ends) - 1))
    return replace(_layout(planner, places[:-1], False), output=places[-1])


def _most(layout: Callable[[int], Layout], count: int, fits: Fits) -> Layout | None:
    """The layout of the largest number up to `count` that fits."""
    if not fits(layout(0)):
        return None
    return layout(_largest(count, lambda number: fits(layout(number))))


def _backwards(planner: Planner, fits: Fits, gpus: list[int], experts_away: bool) -> list[int]:
    """Devices of layers, filled from the last layer and the last GPU backwards."""
    layers = [HOST] * len(planner.model.layers)
    end = len(layers)
    for gpu in reversed(gpus):
        probes = [
            [*layers[: end - number], *([gpu] * number), *layers[end:]] for number in range(end + 1)
        ]
        layouts = [_layout(planner, probe, experts_away) for probe in probes]
        number = _largest_of(layouts, fits)
        layers, end = probes[number], end - number
    return layers


def _forwards(planner: Planner, fits: Fits, layers: list[int]) -> Layout:
    """A mixture whose layers take their experts along, from the first GPU on."""
    layout, begin = _layout(planner, layers, True), 0
    for gpu in range(len(planner.home.accelerators)):
        most = len(layers) - begin
        probes = [_with_experts(planner, layout, gpu, begin, n) for n in range(most + 1)]
        number = _largest_of(probes, fits)
        layout, begin = probes[number], begin + number
    return layout


def _with_experts(planner: Planner, layout: Layout, gpu: int, begin: int, number: int) -> Layout:
    """A layout in which so many layers lie on a GPU with their experts."""
    layers, experts = list(layout.layers), list(layout.experts)
    layers[begin : begin + number] = [gpu] * number
    experts[begin : begin + number] = [gpu] * number
    return replace(layout, layers=tuple(layers), experts=tuple(experts), output=layers[-1])


def _largest_of(layouts: Sequence[Layout], fits: Fits) -> int:
    """The number of the last layout that fits, where each takes more memory than the one before."""
    return _largest(len(layouts) - 1, lambda number: fits(layouts[number]))


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, by bisection; 0 counts as fitting."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
