"""How files become visible, all at once.

`rules` says who wins against whom, `history` what a version is, `loop` how a commit ends in one
of three outcomes, `manifests` what a snapshot is made of, `iceberg` writes it. Pure.
"""
