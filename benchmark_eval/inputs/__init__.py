"""Reading and validating the user's files."""
