"""What situate reaches, measured: `python -m benchmarks`. See docs/benchmarks.md."""
