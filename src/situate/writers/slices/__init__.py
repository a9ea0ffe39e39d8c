"""Pipelines and data parallelism of plans of slices, as tools that run them take them."""
