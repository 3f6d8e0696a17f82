"""Where a key lives: the hash, the tree of nodes, the files in it."""
