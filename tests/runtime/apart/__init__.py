"""A device that has memory of its own."""
