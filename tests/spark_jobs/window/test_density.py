"""Windows are no larger than the positional writer's memory allows for what bronze holds."""

from __future__ import annotations

from spark_jobs.window.density import ChangeDensity, FollowedDensity, ImagesBelow
from tidegate.limits import CASCADE_BYTES_MAX, CASCADE_LOGGED_ROWS_MAX, UPSERT_KEYS_BYTES_MAX
from tidegate.upsert.cost import KEY_RECORD_BYTES

WINDOW = 512 << 20
CHANGES = UPSERT_KEYS_BYTES_MAX // KEY_RECORD_BYTES


def test_the_first_window_expects_the_narrowest_rows() -> None:
    density = ChangeDensity()
    assert WINDOW // 3 < density.bytes_max(WINDOW) < WINDOW
    assert density.bytes_max(1 << 20) == 1 << 20


def test_wide_rows_give_whole_windows_and_narrow_ones_what_fits() -> None:
    density = ChangeDensity()
    for _ in range(5):
        density.note(200 << 20, 1_000_000)
    assert density.bytes_max(WINDOW) == WINDOW
    density.note(512 << 20, 20_500_000)
    fits = density.bytes_max(WINDOW)
    assert 0.87 * CHANGES < fits * 20_500_000 / (512 << 20) < 0.88 * CHANGES, "and room for a window with a few more"
    density.note(16 << 10, 1)
    assert density.bytes_max(WINDOW) == fits, "a small window says nothing of a backlog"


def test_rows_so_dense_that_no_large_window_comes_are_forgotten_when_they_end() -> None:
    """The log's compressed transactions hold several changes a byte."""
    density = ChangeDensity()
    density.note(64 << 20, 10 * CHANGES)
    assert density.bytes_max(WINDOW) < 8 << 20
    for _ in range(40):
        density.note(density.bytes_max(WINDOW), 1000)
    assert density.bytes_max(WINDOW) == WINDOW


def test_a_small_window_with_too_much_counts() -> None:
    density = ChangeDensity()
    density.note(1 << 20, 2 * CHANGES)
    assert density.bytes_max(WINDOW) < 1 << 19


def test_changes_below_foreign_keys_have_a_bound_of_their_own() -> None:
    density = FollowedDensity()
    assert density.bytes_max(WINDOW) == int(0.875 * 24 * CASCADE_LOGGED_ROWS_MAX)
    for _ in range(20):
        density.note(density.bytes_max(WINDOW), 0)
    assert density.bytes_max(WINDOW) == WINDOW, "none of them for long"
    density.note(WINDOW, 2 * CASCADE_LOGGED_ROWS_MAX)
    assert density.bytes_max(WINDOW) == int(0.875 * (WINDOW // 2))


def test_a_bound_grows_to_no_end_without_changes() -> None:
    density = FollowedDensity()
    for _ in range(3000):
        density.note(WINDOW, 0)
    assert density.bytes_max(WINDOW) == WINDOW
    density.note(WINDOW, 2 * CASCADE_LOGGED_ROWS_MAX)
    assert density.bytes_max(WINDOW) == int(0.875 * (WINDOW // 2))


def test_wide_images_count_for_several() -> None:
    assert (ImagesBelow(10, 1000) + ImagesBelow(5, 500)).changes == 15
    assert ImagesBelow(10, CASCADE_BYTES_MAX // 2).changes == CASCADE_LOGGED_ROWS_MAX // 2
