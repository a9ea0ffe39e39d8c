"""Plans and the speed of making them, measured."""
