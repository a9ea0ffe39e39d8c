"""Times in Kineto traces."""

from __future__ import annotations

import pytest

from situate.errors import ReadError
from situate.readers import kineto
from situate.readers.chrome_trace.events import decode, spans
from tests.readers.traces import KERNELS, chrome_trace, event


def test_a_call_has_the_kernels_that_it_launched():
    profile = kineto.profile(chrome_trace(*KERNELS))
    linear, relu = profile.calls
    assert (linear.name, relu.name) == ("aten::linear", "aten::relu")
    assert profile.gpu_seconds(linear) == pytest.approx(40e-6)
    assert profile.gpu_seconds(relu) == pytest.approx(5e-6)
    assert profile.cpu_seconds(linear) == pytest.approx(20e-6)
    assert profile.kernels == 2


def test_a_launch_of_another_thread_is_another_s():
    moved = [{**e, "tid": 8} if e["name"] == "cudaLaunchKernel" else e for e in KERNELS]
    profile = kineto.profile(chrome_trace(*moved))
    assert [profile.gpu_seconds(call) for call in profile.calls] == [0, 0]


def test_a_kernel_counts_once_where_runtime_and_driver_both_launched_it():
    again = event("cuLaunchKernel", 13, 1, "cuda_driver", args={"correlation": 50})
    profile = kineto.profile(chrome_trace(*KERNELS, again))
    assert profile.gpu_seconds(profile.calls[0]) == pytest.approx(40e-6)


def test_calls_are_in_the_order_of_their_numbers():
    """Microseconds are too coarse to tell which of two began first."""
    inner = event("inner", 5, 0, args={"External id": 2})
    outer = event("outer", 5, 0, args={"External id": 1})
    profile = kineto.profile(chrome_trace(inner, outer))
    assert [call.name for call in profile.calls] == ["outer", "inner"]


def test_what_is_no_kineto_trace_is_said():
    with pytest.raises(ReadError, match="no event has the category cpu_op"):
        kineto.profile(chrome_trace(event("a", 0, 1, "blink")))


def test_a_bad_argument_is_named():
    with pytest.raises(ReadError, match=r"traceEvents\[0\].args: Expected `int`"):
        kineto.profile(chrome_trace(event("a", 0, 1, args={"External id": [1]})))


@pytest.mark.parametrize("now", ["cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset"])
def test_categories_of_earlier_versions_are_those_of_today(now):
    earlier = {today: word for word, today in kineto.EARLIER.items()}
    for word in (earlier[now], earlier[now].title(), now):
        (span,) = spans(decode(chrome_trace(event("a", 0, 1, word)))).spans
        assert kineto.category(span) == now


def test_a_profile_of_an_earlier_version_has_the_kernels_that_calls_launched():
    words = {"cpu_op": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel"}
    earlier = kineto.profile(chrome_trace(*({**e, "cat": words[e["cat"]]} for e in KERNELS)))
    assert [earlier.gpu_seconds(call) for call in earlier.calls] == pytest.approx([40e-6, 5e-6])
