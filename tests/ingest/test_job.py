from __future__ import annotations

import subprocess
import sys


def test_a_writer_on_an_executor_loads_no_catalog_code() -> None:
    """Importing pyiceberg costs a worker a second; a writer needs Arrow and Polars only."""
    code = (
        "import sys; import arcticlake.ingest.job, arcticlake.ingest.parquet; "
        "print([m for m in sys.modules if m.split('.')[0] in {'pyiceberg', 'pyspark'}])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
