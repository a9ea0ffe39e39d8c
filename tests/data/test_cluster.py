"""A cluster is validated whole; each message names the file and the device or link at fault."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from situate.data import cluster as clusters
from situate.data.cluster import PRESETS, Cluster, Device, Link
from situate.data.cluster_keys import NO_UNIT
from situate.data.graph import MachineDevice
from situate.errors import ClusterError

ANY = (Link("*", "*", 1e9),)


def read(tmp_path, text: str | bytes) -> Cluster:
    path = tmp_path / "c.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Cluster.read(path)


TWO = """
name = "two"
[[devices]]
name = "gpu"
count = 2
memory = "24 GiB"
[[links]]
from = "gpu*"
to = "gpu*"
bandwidth = 1e9
"""


# Devices of a file: their number and their memory.
def test_count_repeats_a_device_with_a_number_behind_its_name(tmp_path):
    cluster = read(tmp_path, TWO)
    assert cluster.names == ["gpu0", "gpu1"]
    assert [device.memory for device in cluster.devices] == [24 * 2**30] * 2


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1048576", 2**20),
        ('"7 B"', 7),
        ('"1.5 KB"', 1500),
        ('"26 GB"', 26 * 10**9),
        ('"11GiB"', 11 * 2**30),
        ('"2 TB"', 2 * 10**12),
    ],
)
def test_memory_is_bytes_or_a_text_with_a_unit(tmp_path, text, size):
    cluster = read(tmp_path, f'name = "c"\n[[devices]]\nname = "d"\nmemory = {text}\n')
    assert cluster.devices[0].memory == size


@pytest.mark.parametrize("text", ["24", "24 Gi", "24 gb", ""])
def test_memory_without_a_unit_that_there_is_is_refused(tmp_path, text):
    """24 would be bytes, and who writes it in quotes means GiB."""
    with pytest.raises(ClusterError, match=rf"such as '24 GiB', got '{text}'"):
        read(tmp_path, f'name = "c"\n[[devices]]\nname = "d"\nmemory = "{text}"\n')


@pytest.mark.parametrize("size", ["24", "24.0", "24576", "1048575"])
def test_a_small_number_without_a_unit_is_refused_with_the_remedy(tmp_path, size):
    """It would be bytes, and who writes it means GiB or MiB."""
    with pytest.raises(ClusterError) as error:
        read(tmp_path, f'name = "c"\n[[devices]]\nname = "d"\nmemory = {size}\n')
    number = size.removesuffix(".0")
    assert str(error.value) == (
        f"{tmp_path / 'c.toml'}: devices[0].memory: {number} without a unit is bytes: write a "
        f"unit, such as '24 GiB'; '{number} B' if so few are meant; {NO_UNIT}"
    )


@pytest.mark.parametrize("count", [10**12, 0, -1])
def test_a_count_of_identical_devices_is_refused_before_any_is_made(count):
    with pytest.raises(ClusterError, match=f"between 1 and 256 devices, got {count}"):
        Cluster.identical(count)


def test_a_device_without_memory_is_unlimited(tmp_path):
    assert read(tmp_path, 'name = "c"\n[[devices]]\nname = "d"\n').devices[0].memory is None


# Links match pairs of devices by patterns, and a name makes them share a channel.
def test_of_two_links_that_match_a_pair_the_later_one_holds():
    devices = tuple(Device(f"gpu{i}") for i in range(3))
    links = (*ANY, Link("gpu0", "gpu2", 5e9, latency=1e-6))
    bandwidth = Cluster("c", devices, links).bandwidth
    assert bandwidth[0, 2] == bandwidth[2, 0] == 5e9
    assert bandwidth[0, 1] == 1e9
    assert np.isinf(np.diag(bandwidth)).all()


def test_a_link_of_one_direction_leaves_the_other_alone():
    links = (*ANY, Link("gpu0", "gpu1", 5e9, latency=1e-6, both=False))
    cluster = Cluster("c", (Device("gpu0"), Device("gpu1")), links)
    assert cluster.bandwidth[0, 1] == 5e9
    assert cluster.bandwidth[1, 0] == 1e9
    assert cluster.latency.tolist() == [[0.0, 1e-6], [0.0, 0.0]]


def test_without_a_name_every_ordered_pair_has_a_channel_of_its_own():
    cluster = Cluster("c", tuple(Device(f"d{i}") for i in range(3)), ANY)
    assert sorted(cluster.channels) == sorted(
        f"d{i}->d{j}" for i in range(3) for j in range(3) if i != j
    )
    assert (np.diag(cluster.channel) == -1).all()


def test_a_named_channel_is_shared_and_may_hold_the_devices_names():
    devices = tuple(Device(f"d{i}") for i in range(3))
    shared = Cluster("c", devices, (Link("*", "*", 1e9, channel="root"),))
    assert shared.channels == ["root"]
    senders = Cluster("c", devices, (Link("*", "*", 1e9, channel="{from} up"),))
    assert senders.channels == ["d0 up", "d1 up", "d2 up"]
    assert senders.channel[1, 0] == senders.channel[1, 2]
    receivers = Cluster("c", devices, (Link("*", "*", 1e9, channel="{to} down"),))
    assert receivers.channel[0, 1] == receivers.channel[2, 1]


def test_devices_without_a_link_are_an_error_that_says_what_to_add():
    devices = (Device("a"), Device("b"))
    with pytest.raises(ClusterError, match=r"no link from 'a' to 'b': add a \[\[links\]\] entry"):
        Cluster("c", devices)
    with pytest.raises(ClusterError, match="no link from 'b' to 'a'"):
        Cluster("c", devices, (Link("a", "b", 1e9, both=False),))


def test_patterns_are_compared_with_devices_and_not_with_pairs_of_them(monkeypatch):
    comparisons = []
    match = clusters.fnmatchcase
    monkeypatch.setattr(clusters, "fnmatchcase", lambda *p: comparisons.append(p) or match(*p))
    devices = tuple(Device(f"d{i}") for i in range(20))
    Cluster("c", devices, (*ANY, *(Link(f"d{i}", "d0", 1e9) for i in range(20))))
    assert len(comparisons) <= 2 * (2 * 21 * 20)


def test_one_device_may_have_a_link_to_itself():
    assert Cluster("c", (Device("a"),), ANY).channels == []


def test_memory_may_be_written_as_rates_are(tmp_path):
    cluster = read(tmp_path, 'name = "c"\n[[devices]]\nname = "a"\nmemory = 24e9\n')
    assert cluster.devices[0].memory == 24 * 10**9


def test_zero_devices_are_an_error(tmp_path):
    with pytest.raises(ClusterError, match="cluster 'c': has no devices"):
        Cluster("c", ())
    with pytest.raises(ClusterError, match=r"c\.toml: cluster 'c': has no devices"):
        read(tmp_path, 'name = "c"\ndevices = []\n')


def test_more_devices_than_a_cluster_may_have_are_an_error(tmp_path):
    entries = "".join(f'[[devices]]\nname = "d{i}-"\ncount = 200\n' for i in range(2))
    with pytest.raises(ClusterError, match="between 1 and 256 devices, got 400"):
        read(tmp_path, f'name = "c"\n{entries}')


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    assert read(tmp_path, "\ufeff" + TWO).name == "two"


# Errors name the entry at fault: of devices, links, files and presets.
def test_two_devices_of_one_name_are_an_error():
    with pytest.raises(ClusterError, match="two devices are called 'a'"):
        Cluster("c", (Device("a"), Device("a")), ANY)


@pytest.mark.parametrize(
    ("transfers", "message"),
    [
        ("blockng", "cluster 'c': unknown transfers 'blockng'; did you mean 'blocking'?"),
        ("atomic", "cluster 'c': unknown transfers 'atomic'; known: blocking, overlapped"),
        (None, "cluster 'c': unknown transfers None"),
    ],
)
def test_a_cluster_overlaps_or_blocks(transfers, message):
    with pytest.raises(ClusterError, match=re.escape(message)):
        Cluster("c", (Device("a"), Device("b")), ANY, transfers)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (Device("a", memory=0), r"devices\[0\] 'a': memory: must be between 1 and 2\^53, got 0"),
        (Device("a", memory=-1), r"memory: must be between 1 and 2\^53, got -1"),
        (Device("a", memory=2**60), r"memory: must be between 1 and 2\^53"),
        (Device("a", memory=16e9), r"devices\[0\] 'a': memory: must be an integer, got 16"),
        (Device("a", memory=17.5), r"memory: must be an integer, got 17.5"),
        (Device("a", memory="24 GiB"), r"memory: must be an integer, got '24 GiB'"),
        (Device("a", bandwidth=0.0), r"devices\[0\] 'a': bandwidth: must be positive, got 0"),
        (Device("a", bandwidth=-1.0), "bandwidth: must be positive, got -1"),
        (Device("a", bandwidth=math.nan), "bandwidth: must be positive, got nan"),
        (Device("a", launch=-1e-6), "launch: must be finite and not negative"),
        (Device("a", threads=0), "threads: must be between 1 and 4096, got 0"),
        (Device("a", launch=math.inf), "launch: must be finite and not negative"),
        (
            Device("a", flops={"float32": 0.0}),
            "flops 'float32': must be finite and positive, got 0",
        ),
        (
            Device("a", flops={"float32": math.inf}),
            "flops 'float32': must be finite and positive, got inf",
        ),
        (
            Device("a", flops={"flaot32": 1e12}),
            r"devices\[0\] 'a': flops: unknown dtype 'flaot32'; did you mean 'float32'\?",
        ),
        *(
            (
                Device("a", efficiency={"matmul": fraction}),
                f"efficiency 'matmul': must be above 0 and at most 1, a .*, got {fraction}",
            )
            for fraction in (-1.0, 0.0, 5.0, math.inf, math.nan)
        ),
        (
            Device("a", efficiency={"matmull": 0.5}),
            "unknown op class 'matmull'; did you mean 'matmul'",
        ),
        (Device("a", kind="CPU"), r"devices\[0\] 'a': kind 'CPU' is no CPU's: write 'cpu'"),
        (Device(""), "a name must not be empty"),
        (Device("gpu*"), r"a name must not be empty or hold any of \* \? \[ \]"),
    ],
)
def test_a_bad_device_is_named(device, message):
    with pytest.raises(ClusterError, match=message):
        Cluster("c", (device,))


@pytest.mark.parametrize(
    ("link", "message"),
    [
        (Link("*", "*", 0.0), r"links\[0\]: bandwidth: must be positive, got 0"),
        (Link("*", "*", -1.0), r"links\[0\]: bandwidth: must be positive, got -1"),
        (Link("*", "*", math.nan), r"links\[0\]: bandwidth: must be positive, got nan"),
        (Link("*", "*", 1e9, latency=-1.0), r"links\[0\]: latency: must be finite"),
        (Link("*", "*", 1e9, latency=math.nan), r"links\[0\]: latency: must be finite"),
        (Link("gpu*", "*", 1e9), r"links\[0\]: from 'gpu\*' matches no device of a, b$"),
        (Link("a", "c", 1e9), r"links\[0\]: to 'c' matches no device of a, b$"),
        (Link("*", "*", 1e9, channel="{form}"), r"links\[0\]: channel: '\{form\}' is neither"),
    ],
)
def test_a_bad_link_is_named(link, message):
    with pytest.raises(ClusterError, match=message):
        Cluster("c", (Device("a"), Device("b")), (link,))


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_a_bad_synchronisation_is_an_error(value):
    with pytest.raises(ClusterError, match="synchronisation: must be finite and not negative"):
        Cluster("c", (Device("a"),), synchronisation=value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", r"c\.toml: is no TOML: Invalid value \(at end of document\)"),
        ("name = 'c'\n", r"c\.toml: no devices: add devices = "),
        ("devices = [{name = 'a'}]\n", r'c\.toml: no name: add name = "two"$'),
        (
            "name = 'c'\nnaem = 1\n[[devices]]\nname = 'a'\n",
            r"c\.toml: unknown key 'naem'; did you mean 'name'",
        ),
        ("name = 'c'\n[[devices]]\nname = 'a'\nmemroy = 1\n", r"devices\[0\]: .*'memory'"),
        ("name = 'c'\n[[devices]]\nname = 'a'\nmemory = -1\n", r"c\.toml: .*got -1"),
        ("name = 'c'\n[[devices]]\nname = 'a'\nmemory = '1 GX'\n", r"devices\[0\]\.memory: must"),
        ("name = 'c'\n[[devices]]\nname = 'a'\nmemory = true\n", r"devices\[0\]\.memory: must"),
        (f"name = 'c'\n[[devices]]\nname = 'a'\nmemory = '{'9' * 400} B'\n", "memory: must be"),
        (
            "name = 'c'\n[[devices]]\nname = 'a'\ncount = 0\n",
            r"devices\[0\]\.count: must be between 1 and 256, got 0",
        ),
        (
            "name = 'c'\n[[devices]]\nname = 'a'\ncount = 999\n",
            r"devices\[0\]\.count: must be between 1 and 256, got 999",
        ),
        ("name = 'c'\n[[devices]]\nname = 'a'\ncount = 1.5\n", r"devices\[0\]\.count: must be a"),
        ("name = 'c'\n[[devices]]\nname = 'a'\nflops = 3\n", r"\[0\]\.flops: must be FLOP a"),
        (
            "name = 'c'\ntransfers = 'overlaped'\n[[devices]]\nname = 'a'\n",
            r"c\.toml: cluster 'c': unknown transfers 'overlaped'; did you mean 'overlapped'\?",
        ),
        ("name = 'c'\n[[devices]]\nname = 'a'\nmemory = 1.5\n", r"devices\[0\]\.memory: must"),
        ("name = 'c'\n[[devices]]\nname = 'a'\nmemory = inf\n", r"devices\[0\]\.memory: must"),
        ("a = " + "[" * 5000 + "]" * 5000, r"c\.toml: is nested too deeply"),
        ("name = 'c'\nname = 'd'\n", r"c\.toml: is no TOML: Cannot overwrite a value"),
        (b"name = '\xff'\n", r"c\.toml: not UTF-8 at byte 8"),
        ('name = "c"\n"a\\nb\\u001b" = 1\ndevices = []\n', r"unknown key 'a\\nb\\x1b'"),
        ('name = "c"\n[[devices]]\nname = "a"\n"\\n" = 1\n', r"devices\[0\]: .*key '\\n'"),
        (f"name = 'c'\n[[devices]]\nname = 'a'\nmemory = {'9' * 5000}\n", r"c\.toml: Exceeds the"),
        (f"name = 'c'\n[[devices]]\nname = 'a'\nmemory{'.x' * 2000} = 1\n", "nested too deeply"),
    ],
)
def test_a_bad_file_is_named_with_the_entry_at_fault(tmp_path, text, message):
    with pytest.raises(ClusterError, match=message) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "c.toml"))
    assert "\n" not in str(error.value)


def test_a_file_that_is_missing_or_a_folder_is_an_error(tmp_path):
    with pytest.raises(ClusterError, match=r"none\.toml: no such file"):
        Cluster.find(str(tmp_path / "none.toml"))
    with pytest.raises(ClusterError, match="Is a directory"):
        Cluster.read(tmp_path)
    with pytest.raises(ClusterError, match="embedded null byte"):
        Cluster.read(tmp_path / "a\0b")


def test_a_file_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("situate.data.cluster.LIMIT", 1000)
    with pytest.raises(ClusterError, match="/dev/zero: holds more than 1000 bytes"):
        Cluster.read("/dev/zero")


def test_an_unknown_preset_is_an_error_with_the_nearest_name():
    with pytest.raises(ClusterError, match=r"'k80-3'; did you mean 'k80-[248]'"):
        Cluster.find("k80-3")
    with pytest.raises(ClusterError, match="no cluster file or preset 'aaa"):
        Cluster.find("a" * 300)


def test_find_takes_a_file_a_preset_or_identical_devices(tmp_path):
    (tmp_path / "two.toml").write_text(TWO)
    assert Cluster.find(str(tmp_path / "two.toml")).name == "two"
    assert Cluster.find("k80-4") == Cluster.preset("k80-4")
    assert len(Cluster.find("identical:5").devices) == 5


@pytest.mark.parametrize("count", ["0", "-3", "257", "9" * 5000])
def test_a_bad_number_of_identical_devices_is_an_error(count):
    with pytest.raises(ClusterError, match=f"between 1 and 256 devices, got {count[:9]}"):
        Cluster.find(f"identical:{count}")


@pytest.mark.parametrize("text", ["identical", "identical:", "identical:x", "identical:2.5"])
def test_identical_devices_without_their_number_are_an_error(text):
    with pytest.raises(ClusterError, match=f"^{text}: identical:N takes a number, such as ident"):
        Cluster.find(text)


# Identical devices, and machines that a graph's file brings.
def test_identical_devices_are_unlimited_and_transfers_between_them_free():
    cluster = Cluster.identical(3)
    assert all(device.memory is None for device in cluster.devices)
    assert np.isinf(cluster.bandwidth).all()
    assert not cluster.latency.any()


def test_a_machine_of_a_file_keeps_its_names_kinds_and_memory():
    cluster = Cluster.of_machine("m", (MachineDevice("a", "acc", 7), MachineDevice("b", "cpu")))
    assert [(d.name, d.kind, d.memory) for d in cluster.devices] == [
        ("a", "acc", 7),
        ("b", "cpu", None),
    ]


# The hash changes with all that a plan depends on, and with nothing else.
def test_the_hash_follows_times_and_memory_and_not_the_name():
    base = Cluster("c", (Device("a"), Device("b")), ANY)
    assert base.hash == Cluster("d", base.devices, ANY, description="other").hash
    changed = [
        Cluster("c", (Device("a", memory=1), Device("b")), ANY),
        Cluster("c", base.devices, (Link("*", "*", 2e9),)),
        Cluster("c", base.devices, ANY, transfers="blocking"),
        Cluster("c", base.devices, ANY, synchronisation=1e-6),
        Cluster("c", (Device("a", threads=1), Device("b")), ANY),
    ]
    assert len({base.hash, *(cluster.hash for cluster in changed)}) == 6


def test_a_cluster_without_threads_keeps_the_hash_that_plans_know():
    digest = "ab910c49694826c8b319c330226a27121ddd0688c89f375e20b6c8044dd79136"
    assert Cluster.preset("k80-4").hash == digest


# Presets state plausible figures and where these come from.
@pytest.mark.parametrize("name", Cluster.presets())
def test_every_preset_has_its_files_name_rates_memory_and_plausible_links(name):
    cluster = Cluster.preset(name)
    between = ~np.eye(len(cluster.devices), dtype=bool)
    assert cluster.name == name
    assert cluster.description
    assert (cluster.bandwidth[between] > 1e9).all()
    assert (cluster.bandwidth[between] < 1e12).all()
    assert (cluster.latency[between] > 0).all()
    for device in cluster.devices:
        assert device.memory is not None
        assert device.flops["float32"] > 1e11
        assert 1e10 < device.bandwidth < 1e13
        assert 0 < device.launch < 1e-4


@pytest.mark.parametrize("name", Cluster.presets())
def test_cards_with_tensor_cores_for_bfloat16_state_what_they_reach_with_bytes(name):
    for device in Cluster.preset(name).devices:
        if half := device.flops.get("bfloat16"):
            assert 2 * half <= device.flops["int8"] <= 4.1 * half
        assert ("int8" in device.flops) == ("bfloat16" in device.flops)


@pytest.mark.parametrize("name", Cluster.presets())
def test_every_preset_says_where_its_figures_come_from(name):
    entries = (PRESETS / f"{name}.toml").read_text().split("\n\n")
    assert all("#" in entry for entry in entries if "[[devices]]" in entry)


@pytest.mark.parametrize(
    ("name", "gpus"),
    [("k40-2", 2), ("k40-4", 4), ("k40-8", 8), ("k80-2", 2), ("k80-4", 4), ("k80-8", 8)],
)
def test_the_papers_machines_have_11_gb_a_die_and_a_xeon(name, gpus):
    devices = Cluster.preset(name).devices
    assert [d.memory for d in devices if d.kind == "gpu"] == [11 * 10**9] * gpus
    assert [d.kind for d in devices].count("cpu") == 1


def test_dies_of_one_k80_board_share_the_boards_uplink():
    cluster = Cluster.preset("k80-4")
    cpu = cluster.names.index("cpu")
    assert cluster.channel[0, cpu] == cluster.channel[1, cpu] == cluster.channel[0, 2]
    assert cluster.channel[0, cpu] != cluster.channel[2, cpu]
    assert cluster.channel[0, 1] != cluster.channel[0, 2]


def test_two_nodes_share_one_channel_a_direction():
    cluster = Cluster.preset("h100-2x8")
    node = np.array([int(name[4]) for name in cluster.names])
    out = set(cluster.channel[np.ix_(node == 0, node == 1)].ravel().tolist())
    back = set(cluster.channel[np.ix_(node == 1, node == 0)].ravel().tolist())
    assert len(out) == len(back) == 1
    assert out.isdisjoint(back)


UNITLESS = """name = "two"
unit = ""
[[devices]]
name = "d"
count = 2
memory = 248
launch = 3.0
bandwidth = 5
flops = { float32 = 2.0 }
[[links]]
from = "*"
to = "*"
bandwidth = 10.0
latency = 2.0
"""


# Without units, no figure is implausible.
def test_a_file_without_units_may_have_any_positive_figures(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(UNITLESS)
    cluster = Cluster.read(path)
    assert [device.memory for device in cluster.devices] == [248, 248]
    assert cluster.bandwidth[0, 1] == 10
    path.write_text(UNITLESS.replace("bandwidth = 10.0", "bandwidth = -10.0"))
    with pytest.raises(ClusterError, match="bandwidth: must be positive"):
        Cluster.read(path)


def test_the_unit_is_no_part_of_the_hash(tmp_path):
    text = '[[devices]]\nname = "d"\nmemory = "2 GiB"\n'
    hashes = set()
    for unit in ("", 'unit = "s"\n', 'unit = ""\n'):
        (tmp_path / "c.toml").write_text(f'name = "one"\n{unit}{text}')
        hashes.add(Cluster.read(tmp_path / "c.toml").hash)
    assert len(hashes) == 1


@pytest.mark.parametrize("unit", ['unit = "s"\n', ""])
def test_figures_of_another_unit_name_the_key_that_says_there_is_none(unit, tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(UNITLESS.replace("memory = 248\n", "").replace('unit = ""\n', unit))
    with pytest.raises(ClusterError, match='if the figures have no unit, write unit = ""'):
        Cluster.read(path)
    path.write_text(UNITLESS.replace('unit = ""\n', unit))
    with pytest.raises(ClusterError, match='no unit, write unit = "" at the top of the file'):
        Cluster.read(path)


def test_there_is_no_other_unit(tmp_path):
    (tmp_path / "c.toml").write_text(UNITLESS.replace('unit = ""', 'unit = "ms"'))
    with pytest.raises(ClusterError, match="unit: must be s or nothing, such as"):
        Cluster.read(tmp_path / "c.toml")
