"""Settings of the methods that learn, and the dependences of their costs."""
