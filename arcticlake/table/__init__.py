"""What a table is: its columns, its keys, its options, and the two Iceberg tables below it."""
