"""Reports for people: pictures, tables, explanations."""
