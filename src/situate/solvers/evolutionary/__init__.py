"""Methods that breed decisions."""
