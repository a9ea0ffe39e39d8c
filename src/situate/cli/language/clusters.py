"""Clusters from a user's text: presets, files, equal devices, and GPUs such as `2x8xH100`."""

from __future__ import annotations

from situate.data.cluster import Cluster
from situate.errors import ClusterError


def find_cluster(text: str) -> Cluster:
    """The cluster of a preset, of a TOML file, of `identical:N`, or of a text of GPUs.

    Raises:
        ClusterError: it is none of these.
    """
    try:
        return Cluster.find(text)
    except ClusterError as error:
        cluster = None if text.endswith(".toml") else _cluster_of_gpus(text)
        if cluster is None:
            raise error from None
        return cluster


def _cluster_of_gpus(text: str) -> Cluster | None:
    """The cluster of a text of GPUs; None if it names none."""
    from situate.language.training.machine import is_gpu_text
    from situate.language.training.steps.site import find_site

    return find_site(text).cluster if is_gpu_text(text) else None
