"""Looking at a table: files, tree, history, health."""
