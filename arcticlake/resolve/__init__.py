"""Which rows are alive: the one question behind reading and compaction."""
