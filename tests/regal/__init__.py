"""REGAL's experiments, in `benchmarks.regal`."""
