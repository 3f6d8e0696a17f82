"""A change log from a database goes into a table as it is, and the table answers at once."""

from arcticlake import Lake

lake = Lake.open("warehouse")
accounts = lake.create_table(
    "bank.accounts",
    "account_id bigint, owner string, balance decimal(12,2)",
    primary_key="account_id",
)

# Operation and log position come from the source; the table keeps neither.
log = lake.spark.createDataFrame(
    [
        ("I", 1001, 1, "ann", "100.00"),
        ("I", 1002, 2, "bob", "50.00"),
        ("U", 1003, 1, "ann", "80.00"),
        ("U", 1004, 2, "bob", "70.00"),
        ("D", 1005, 2, "bob", None),
    ],
    "op string, lsn bigint, account_id bigint, owner string, balance string",
).selectExpr("op", "lsn", "account_id", "owner", "cast(balance as decimal(12,2)) as balance")

commit = accounts.upsert(log, order_by="lsn", delete_when="op = 'D'")
print(f"version {commit.version}: {commit.rows} changes in {commit.files} files")

accounts.read().show()
lake.sql("select sum(balance) as total from bank.accounts").show()
print(accounts.tree())
