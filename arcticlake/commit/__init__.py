"""How files become visible, all at once.

`rules` says who wins against whom and `history` what a version is. A commit is a `change`; it is
made of `specs`, `manifests` and a `summary`, written by `iceberg`, and brought to one of three
outcomes by `loop`, which reads the catalog's `answer`. Pure.
"""
