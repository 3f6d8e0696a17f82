"""Fewer, merged, sorted files: what is worth rewriting, and how."""
