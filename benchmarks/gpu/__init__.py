"""First light of a GPU: one command on a bare machine, one JSON of figures. See README.md."""
