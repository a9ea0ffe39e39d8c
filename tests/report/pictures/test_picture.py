from __future__ import annotations

import math
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from situate.data.cluster import Cluster, Device
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.errors import MissingExtra, ScheduleError, SituateError
from situate.report.pictures.picture import Heading, _figure, draw, render
from situate.schedule.schedule import Schedule
from tests.report.handmade import HOSTILE, chain, schedule


def svg(problem: Problem, placement: list[int], **heading: object) -> str:
    image = render(problem, schedule(problem, placement), "svg", Heading(**heading))  # type: ignore[arg-type]
    ElementTree.fromstring(image)
    return image.decode()


def many(count: int, devices: int) -> tuple[Problem, Schedule]:
    """`count` ops on end on `devices` devices, without transfers."""
    ops = tuple(Op(f"op{i}", seconds={"*": 1.0}, workspace=i) for i in range(count))
    problem = Problem(Graph("many", ops), Cluster.identical(devices))
    return problem, schedule(problem, [i % devices for i in range(count)])


# Formats, and texts that stay within the picture.
def test_svg_and_png_go_by_the_suffix(tmp_path: Path) -> None:
    problem = chain(3)
    for name, magic in (("plan.svg", b"<?xml"), ("plan.PNG", b"\x89PNG")):
        draw(problem, schedule(problem, [0, 1, 1]), tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(magic)
    assert {path.name for path in tmp_path.iterdir()} == {"plan.svg", "plan.PNG"}


@pytest.mark.parametrize("seconds", [0.0, 5e-324, 1e-300, 1e299])
def test_steps_of_hardly_any_and_of_endless_time_can_be_drawn(seconds: float) -> None:
    ops = (Op("a", seconds={"*": seconds}), Op("b", seconds={"*": 2 * seconds}))
    problem = Problem(Graph("extreme", ops), Cluster.identical(2))
    ElementTree.fromstring(render(problem, schedule(problem, [0, 1]), "svg", Heading()))


@pytest.mark.filterwarnings("ignore:Glyph .* missing from")
@pytest.mark.parametrize("name", ["gpu0", "GPU_NODE0_RANK0001", "W" * 40, HOSTILE[1], HOSTILE[-1]])
def test_names_of_devices_stay_within_the_picture(name: str) -> None:
    problem = chain(2, device_names=[name, "b"])
    figure = _figure(problem, schedule(problem, [0, 1]), Heading())
    FigureCanvasAgg(figure).draw()
    texts = [text for axes in figure.axes for text in axes.texts]
    assert min(text.get_window_extent().x0 for text in texts) >= 0


@pytest.mark.filterwarnings("ignore:Glyph .* missing from")
@pytest.mark.parametrize("letter", ["W", "i", "\x1b", "\u4e2d"])
@pytest.mark.parametrize("modules", [3, 10, 12])
def test_the_title_and_the_keys_stay_within_the_picture(letter: str, modules: int) -> None:
    names = [letter * 20 + str(i) for i in range(modules)]
    ops = tuple(Op(name, seconds={"*": 1.0}, module=name) for name in names)
    problem = Problem(Graph(letter * 200, ops), Cluster.identical(2))
    figure = _figure(problem, schedule(problem, [0] * modules), Heading())
    FigureCanvasAgg(figure).draw()
    legend = figure.axes[0].get_legend()
    assert legend is not None
    for artist in (legend, *figure.texts):
        box = artist.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize(("memory", "keys"), [(None, 2), (200, 4), (1000, 3)])
def test_red_memory_has_a_key_where_there_is_some(memory: int | None, keys: int) -> None:
    problem = chain(4, memory=memory)
    figure = _figure(problem, schedule(problem, [0] * 4), Heading())
    legend = figure.axes[1].get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == keys
    assert ("above the limit" in texts) == (keys == 4)


# Errors leave no file.
def test_another_suffix_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match=r"must end in \.svg or \.png"):
        draw(chain(1), schedule(chain(1), [0]), tmp_path / "plan.pdf")


def test_an_unwritable_path_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match=r"cannot write .*plan\.svg"):
        draw(chain(1), schedule(chain(1), [0]), tmp_path / "missing" / "plan.svg")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"situate\[report\]"):
        draw(chain(1), schedule(chain(1), [0]), tmp_path / "plan.svg")


# Headings and labels, hostile ones too.
def test_the_heading_gives_makespan_bound_and_gap() -> None:
    text = svg(chain(3), [0, 1, 1], lower_bound=3.0, gap=1 / 3, method="heft")
    assert "makespan 4.00 s" in text
    assert "lower bound 3.00 s" in text
    assert "gap 33.3 %" in text
    assert "heft" in text


def test_the_heading_calls_a_plan_without_a_gap_optimal() -> None:
    text = svg(chain(3), [0, 0, 0], lower_bound=3.0, gap=0.0)
    assert "optimal" in text
    assert "gap" not in text
    assert "gap &lt; 0.1 %" in svg(chain(3), [0, 0, 0], lower_bound=3.0, gap=1.8e-4)


def test_graphs_without_a_unit_show_plain_numbers() -> None:
    text = svg(chain(3, unit="", bandwidth=math.inf), [0, 1, 1])
    assert "makespan 3 " in text
    assert "graph's own unit" in text


def test_a_plan_that_does_not_fit_says_so() -> None:
    assert "does not fit in memory" in svg(chain(3, memory=100), [0, 0, 0])
    assert "does not fit" not in svg(chain(3, memory=1000), [0, 0, 0])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_draw_as_they_are(name: str) -> None:
    device = name.translate(str.maketrans("", "", "*?[]"))
    problem = chain(names=[name, "other"], device_names=[device, "b"])
    graph = Graph(name, problem.graph.ops, problem.graph.tensors)
    text = svg(Problem(graph, problem.cluster), [0, 1], title=name, method=name)
    assert "<script" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize("rules", sorted(RULES))
def test_every_rules_can_be_drawn(rules: str) -> None:
    svg(chain(5, rules=RULES[rules]), [0, 1, 1, 0, 1])


def test_one_op_of_no_duration() -> None:
    problem = Problem(Graph("nothing", (Op("a", seconds={"*": 0.0}),)), Cluster.identical(1))
    assert "makespan 0 s" in svg(problem, [0])


def test_a_device_without_a_limit_beside_one_with() -> None:
    problem = chain(2)
    cluster = Cluster("c", (Device("a", memory=500), Device("b")), problem.cluster.links)
    assert "limit" in svg(Problem(problem.graph, cluster), [0, 1])


# Size, determinism and matplotlib's state.
def test_three_thousand_ops_stay_under_two_megabytes() -> None:
    problem, plan = many(3000, 4)
    assert len(render(problem, plan, "svg")) < 2_000_000


def test_ops_too_narrow_to_tell_apart_do_not_make_it_larger() -> None:
    small, large = (len(render(*many(count, 2), "svg")) for count in (20_000, 60_000))
    assert large < 1.2 * small


def test_no_global_state_of_matplotlib_changes() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    svg(chain(3), [0, 1, 1])
    assert dict(matplotlib.rcParams) == before


def test_the_same_plan_draws_the_same_pixels() -> None:
    problem = chain(3)
    images = [render(problem, schedule(problem, [0, 1, 1]), "png") for _ in range(2)]
    assert np.array_equal(*(np.frombuffer(image, np.uint8) for image in images))


def test_devices_say_how_busy_they_are() -> None:
    text = svg(chain(4), [0, 0, 0, 1])
    assert "60 % busy" in text
    assert "20 % busy" in text


def test_of_many_devices_only_those_in_use_are_drawn() -> None:
    names = [f"device-{i}" for i in range(20)]
    text = svg(chain(2, devices=20, device_names=names), [3, 11])
    assert {i for i in range(20) if f"-- device-{i} --" in text} == {3, 11}
    assert "2 ops on 2 of 20 devices" in text


def test_a_plan_that_takes_no_memory_has_no_memory_panel() -> None:
    problem = Problem(Graph("g", (Op("a", seconds={"*": 1.0}),)), Cluster.identical(1))
    assert "workspace" not in svg(problem, [0])
    assert "workspace" in svg(chain(1), [0])


@pytest.mark.parametrize("devices", [1, 8, 17, 64])
def test_any_number_of_devices_can_be_drawn(devices: int) -> None:
    svg(chain(devices, devices=devices), list(range(devices)))


def test_a_schedule_that_never_ends_is_an_error() -> None:
    plan = replace(schedule(chain(1), [0]), makespan=math.inf)
    with pytest.raises(ScheduleError, match="never ends"):
        render(chain(1), plan, "svg")
