"""Reports on plans of slices: slices, stages, replicas, and the kind of parallelism."""
