"""Rows out: conditions, plans, and a plan as Arrow, DataFrame or SQL."""
