"""Writers of graphs, plans and schedules; one file a target."""
