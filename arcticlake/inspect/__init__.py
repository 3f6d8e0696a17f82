"""What a table looks like, and whether what lies on disk keeps the rules."""
