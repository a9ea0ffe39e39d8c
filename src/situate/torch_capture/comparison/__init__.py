"""Two steps that should train the same: without chance, and by how much their gradients differ."""
