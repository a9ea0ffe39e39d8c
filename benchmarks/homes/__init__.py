"""Language models on machines at home: predictions against published measurements."""
