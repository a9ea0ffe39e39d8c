"""The page's parts: from the contents of records to what the names in their texts stand for."""
