"""A running search in the browser: the file of its progress, its state, and the server."""
