"""Rows that never end: micro-batches, each committed once."""
