"""The simulator, and the rules by which decisions become schedules."""
