"""One file a target: where graphs, plans and schedules are written to."""
