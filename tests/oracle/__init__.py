"""The slow, obvious witness: docs/execution-model.md in plain Python."""
