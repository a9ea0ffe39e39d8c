"""Methods that learn, measured and tuned."""
