"""What people look at: pictures, tables, explanations."""
