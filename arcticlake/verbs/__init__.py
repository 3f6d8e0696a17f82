"""Whole operations: each wires the stages below it together, from the call to the commit."""
