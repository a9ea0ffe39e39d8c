"""Reading and writing files, whatever their format."""
