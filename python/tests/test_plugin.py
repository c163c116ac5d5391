"""The plugin on the examples that pytest-memray's documentation has, and on their failures."""

EXAMPLES = """
import pytest

kept = []

@pytest.mark.limit_memory("24 MB")
def test_foobar():
    assert len(bytearray(20 << 20))

@pytest.mark.limit_memory("100 KB")
def test_too_much():
    assert len(list(map(str, range(100000))))

@pytest.mark.limit_leaks("1 MB")
def test_no_leak():
    for _ in range(10):
        assert len(bytearray(5 << 20))

@pytest.mark.limit_leaks("1 MB")
def test_a_circle_is_no_leak():
    circle = [bytearray(2 << 20)]
    circle.append(circle)

@pytest.mark.limit_leaks("1 MB")
def test_leak():
    kept.append(bytearray(2 << 20))

@pytest.mark.limit_leaks("100 KB")
def test_leak_of_small_objects():
    kept.extend([object() for _ in range(20000)])

@pytest.mark.limit_leaks("1 MB", filter_fn=lambda stack: False)
def test_leak_that_is_known():
    kept.append(bytearray(2 << 20))

@pytest.mark.limit_memory("1 MB", current_thread_only=True)
def test_another_thread():
    import threading
    thread = threading.Thread(target=lambda: len(bytearray(4 << 20)))
    thread.start()
    thread.join()

def test_without_limit():
    assert len(bytearray(30 << 20))
"""


def test_examples_pass_and_fail_as_they_should(pytester):
    pytester.makepyfile(test_examples=EXAMPLES)
    outcome = pytester.runpytest_subprocess("--heapr", "--heapr-top", "2", "--strict-markers", "-p", "no:cacheprovider")
    outcome.assert_outcomes(passed=6, failed=3)
    text = outcome.stdout.str()
    for line in (
        "Test was limited to 100.0 KiB but allocated",
        "Test was allowed to leak 1.0 MiB per location but at least one location leaked 2.0 MiB",
        "Test was allowed to leak 100.0 KiB per location but at least one location leaked 312.5 KiB",
        "heapr: allocations at the peak",
        "heapr: leaked allocations",
        "bytearray",
        "peak 30.0 MiB, not freed",
    ):
        assert line in text, line
    for name in ("test_too_much", "test_leak", "test_leak_of_small_objects"):
        outcome.stdout.fnmatch_lines([f"FAILED *::{name} *"])
    summary = text[text.index("= heapr =") :]
    assert summary.count("test_examples.py::") - summary.count("FAILED") == 2, summary


def test_traces_are_kept_where_asked(pytester):
    pytester.makepyfile(test_one="def test_it():\n    assert len(bytearray(1000))\n")
    pytester.runpytest_subprocess("--heapr", "--heapr-keep", "traces").assert_outcomes(passed=1)
    assert [path.name for path in (pytester.path / "traces").iterdir()] == ["test_one.py-test_it.heapr"]
