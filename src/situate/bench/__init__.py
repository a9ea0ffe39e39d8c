"""Methods on families of problems, beside the best values that are known; see docs/bench.md."""
