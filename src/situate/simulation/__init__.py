"""The simulator, and the rules that turn decisions into schedules."""
