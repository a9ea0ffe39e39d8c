"""The papers' experiments beyond their tables."""
