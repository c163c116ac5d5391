"""What a tracker counts, to the byte where the program's own sizes are known."""

import ctypes
import threading

import pytest

import heapr

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


def test_peak_and_leak_are_those_of_the_block_of_code():
    before = bytearray(64 << 20)
    with heapr.Tracker() as tracker:
        first = bytearray(8 << 20)
        second = bytearray(4 << 20)
        del first
        third = libc.malloc(3 << 20)
    after = bytearray(32 << 20)
    own_bytes = (12 << 20) + 2
    assert own_bytes <= tracker.peak_bytes < own_bytes + (64 << 10)
    leaked_bytes = (7 << 20) + 1
    assert leaked_bytes <= tracker.leaked_bytes < leaked_bytes + (64 << 10)
    largest = tracker.allocations("leaked", top=2)
    assert [one.size_bytes for one in largest] == [(4 << 20) + 1, 3 << 20]
    libc.free(third)
    del before, second, after


def test_small_objects_count_one_by_one():
    with heapr.Tracker() as tracker:
        kept = [str(number) * 50 for number in range(10000, 20000)]
    # A text of 250 characters has a header of 40 or 48 bytes and an end of 1.
    text_bytes = kept[0].__sizeof__()
    assert 10000 * text_bytes <= tracker.leaked_bytes < 10000 * text_bytes + (256 << 10)
    # They outlive the recording, and are freed by Python's own allocator.
    del kept
    # Left in Python's arenas they count where heapr knows this Python's own allocator.
    with heapr.Tracker(small_objects=False) as tracker:
        kept = [str(number) * 50 for number in range(10000, 11000)] + [bytearray(1 << 20)]
    assert 1 << 20 <= tracker.leaked_bytes < (1 << 20) + 1000 * text_bytes + (1300 << 10)


def test_other_threads_are_seen():
    with heapr.Tracker() as tracker:
        kept = []
        thread = threading.Thread(target=lambda: kept.append(bytearray(5 << 20)))
        thread.start()
        thread.join()
    assert tracker.allocations("leaked", top=1)[0].size_bytes == (5 << 20) + 1


def test_a_named_file_stays_and_two_at_once_are_refused(tmp_path):
    path = tmp_path / "kept.heapr"
    with heapr.Tracker(str(path)):
        with pytest.raises(heapr.HeaprError, match="nested"):
            heapr.Tracker().__enter__()
    assert path.stat().st_size > 0
    with pytest.raises(heapr.HeaprError, match="exists"):
        heapr.Tracker(str(path)).__enter__()


@pytest.mark.parametrize("text,size_bytes", [("24 MB", 24 << 20), ("1.5KB", 1536), ("100 B", 100), ("1 GiB", 1 << 30)])
def test_sizes(text, size_bytes):
    assert heapr.parse_size(text) == size_bytes
