"""Rows in: checked, routed to leaves, written as data files."""
