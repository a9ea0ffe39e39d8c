"""Measured rates for language models."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from situate.data.cluster import Cluster, Device
from situate.errors import ClusterError
from situate.host import probe
from situate.language.cards import CPU_READING

HOST = Cluster("mine", (Device("cpu", kind="cpu", bandwidth=1e9, threads=2),))


def test_the_cpu_gets_the_bandwidth_of_which_the_measured_one_is_a_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "read_rate", lambda threads: 8.5e9 * threads)
    (cpu,) = probe.probe(HOST).devices
    assert cpu.bandwidth == pytest.approx(17e9 / CPU_READING)
    assert cpu.threads == 2


def test_memory_is_read_at_some_rate() -> None:
    assert 1e6 < probe.read_rate(2, 1 << 16, 0.01) < 1e13


def test_the_fastest_run_counts_and_there_are_two_at_least() -> None:
    calls: list[int] = []
    assert probe.fastest(lambda: calls.append(1), 0.0) >= 0
    assert len(calls) == 2


def _program(folder: Path, text: str) -> None:
    path = folder / "llama-bench"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_llama_bench_says_its_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    _program(tmp_path, "echo '[{\"avg_ts\": 12.5}]'")
    assert probe.bench_speed(tmp_path / "m.gguf", 99) == 12.5


@pytest.mark.parametrize("text", ["exit 1", "echo nothing", "echo '[]'"])
def test_a_failure_of_llama_bench_is_one_line(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    _program(tmp_path, text)
    with pytest.raises(ClusterError, match=r"llama-bench: failed with .*m\.gguf"):
        probe.bench_speed(tmp_path / "m.gguf", 0)


def test_a_missing_llama_bench_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="not on the path"):
        probe.bench_speed(tmp_path / "m.gguf", 0)
