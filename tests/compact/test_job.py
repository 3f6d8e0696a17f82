from __future__ import annotations

import subprocess
import sys


def test_workers_start_without_pyiceberg() -> None:
    """Importing it would cost every Python worker a second."""
    code = (
        "import sys, arcticlake.compact.job, arcticlake.compact.parquet;"
        "sys.exit('pyiceberg' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
