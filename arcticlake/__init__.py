"""Arctic: a stream-and-batch lakehouse for PySpark on plain Apache Iceberg tables.

The code is a story; read it in this order (ARCHITECTURE.md has every module):

    table/     what a table is
    tree/      where a key lives
    commit/    how files become visible, all at once
    ingest/    rows in
    resolve/   which rows are alive
"""
