from __future__ import annotations

from arcticlake.compact.progress import Progress


def test_progress_tells_speed_and_the_time_left() -> None:
    far = Progress(rows_done=250, rows_total=1000, seconds=5)

    assert far.speed == 50
    assert far.seconds_left == 15
    assert str(far) == "250 of 1,000 rows (25 %), 50 rows/s, 15 s left"


def test_progress_before_the_first_row_promises_nothing() -> None:
    far = Progress(rows_done=0, rows_total=1000, seconds=0)

    assert far.seconds_left is None
    assert str(far) == "0 of 1,000 rows (0 %), 0 rows/s"


def test_work_without_rows_is_done_at_once() -> None:
    assert str(Progress(0, 0, 1)) == "0 of 0 rows (100 %), 0 rows/s"
