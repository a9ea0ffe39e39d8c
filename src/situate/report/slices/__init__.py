"""Reports on plans of slices: what slices, stages and replicas do, and the kind of parallelism."""
