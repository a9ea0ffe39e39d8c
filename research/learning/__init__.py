"""Settings of the methods that learn, and what their costs depend on."""
