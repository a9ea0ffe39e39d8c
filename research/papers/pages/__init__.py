"""The page's parts: from the contents of records to the values of the names in their texts."""
