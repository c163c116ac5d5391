"""The plugin on the examples that pytest-memray's documentation has, and on their failures."""

import pytest

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

def in_a_thread(work):
    import threading
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

@pytest.mark.limit_memory("1 MB", current_thread_only=True)
def test_another_thread():
    in_a_thread(lambda: len(bytearray(4 << 20)))

@pytest.mark.limit_leaks("1 MB", current_thread_only=True)
def test_a_leak_of_another_thread():
    in_a_thread(lambda: kept.append(bytearray(4 << 20)))

def is_known(stack):
    assert all(isinstance(frame.lineno, int) for frame in stack.frames)
    return not any(frame.function == "known" and frame.filename.endswith("test_examples.py") for frame in stack.frames)

def known():
    kept.append(bytearray(3 << 20))

@pytest.mark.limit_leaks("1 MB", filter_fn=is_known)
def test_a_leak_is_filtered_by_its_stack():
    known()

def test_track() -> None:
    from heapq import heappush

    h = []
    for value in range(1):
        heappush(h, value)
    assert [1] * 5_000

@pytest.mark.limit_memory("100 KB")
def test_memory_exceed() -> None:
    found = [[i] * 1_000 for i in range(15)]
    assert found

@pytest.mark.limit_memory("24 furlongs")
def test_a_limit_that_is_none():
    pass

@pytest.mark.limit_memory()
def test_a_limit_without_a_value():
    pass

@pytest.mark.limit_leaks("1 MB", no_such=True)
def test_a_limit_with_an_unknown_argument():
    pass

def test_without_limit():
    assert len(bytearray(30 << 20))
"""


def test_examples_pass_and_fail_as_they_should(pytester):
    pytester.makepyfile(test_examples=EXAMPLES)
    outcome = pytester.runpytest_subprocess("--heapr", "--heapr-top", "2", "--strict-markers", "-p", "no:cacheprovider")
    outcome.assert_outcomes(passed=9, failed=4, errors=3)
    text = outcome.stdout.str()
    for line in (
        "Test was limited to 100.0 KiB but allocated",
        "'24 furlongs' is no size",
        "limit_memory: missing a required argument: 'limit'",
        "limit_leaks: got an unexpected keyword argument 'no_such'",
        "Test was allowed to leak 1.0 MiB per location but at least one location leaked 2.0 MiB",
        "Test was allowed to leak 100.0 KiB per location but at least one location leaked 312.",
        "heapr: allocations at the peak",
        "heapr: leaked allocations",
        "    test_leak (",
        "peak 30.0 MiB, not freed",
    ):
        assert line in text, line
    for name in ("test_too_much", "test_leak", "test_leak_of_small_objects", "test_memory_exceed"):
        outcome.stdout.fnmatch_lines([f"FAILED *::{name}*"])
    summary = text[text.index("= heapr =") :]
    assert summary.count("test_examples.py::") - summary.count("FAILED") - summary.count("ERROR") == 2, summary


LIMITED = """
import pytest, subprocess, sys

@pytest.mark.parametrize("number", range(4))
@pytest.mark.limit_memory("4 MB")
def test_within(number):
    assert len(bytearray(1 << 20))

@pytest.mark.limit_memory("4 MB")
def test_over():
    assert len(bytearray(8 << 20))

@pytest.mark.limit_memory("4 MB")
def test_a_child_is_another_process():
    subprocess.run([sys.executable, "-c", "bytearray(64 << 20)"], check=True)
"""


@pytest.mark.parametrize("plugin, options", [("xdist", ("-n", "2")), ("pytest_forked", ("--forked",))])
def test_limits_hold_in_processes_of_other_plugins(pytester, plugin, options):
    pytest.importorskip(plugin)
    pytester.makepyfile(test_plain="def test_plain():\n    pass\n")
    if pytester.runpytest_subprocess(*options, "-p", "no:heapr").ret != 0:
        pytest.skip(f"{plugin} does not run with this pytest")
    pytester.path.joinpath("test_plain.py").unlink()
    pytester.makepyfile(test_limited=LIMITED)
    outcome = pytester.runpytest_subprocess(*options, "-p", "no:cacheprovider")
    outcome.assert_outcomes(passed=5, failed=1)
    assert "Test was limited to 4.0 MiB but allocated 8." in outcome.stdout.str()


@pytest.mark.parametrize("end", ["pass", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_no_session_is_left_when_the_run_ends_by_any_means(pytester, monkeypatch, end):
    import time

    from heapr.program import ask

    monkeypatch.setenv("HEAPR_RUNTIME_DIR", str(pytester.path))
    pytester.makepyfile(
        test_end=f"""
        import os, pytest, signal

        @pytest.mark.limit_memory("4 MB")
        def test_one():
            assert len(bytearray(1 << 20))

        @pytest.mark.limit_memory("4 MB")
        def test_two():
            assert len(bytearray(2 << 20))

        def test_end():
            {end}
        """
    )
    outcome = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert outcome.ret == (0 if end == "pass" else -9)
    patience = time.monotonic() + 120
    while b"shared" in ask("status"):
        assert time.monotonic() < patience
        time.sleep(0.1)


def test_options_may_stand_in_a_file(pytester):
    pytester.makeini("[pytest]\nheapr = true\nheapr_top = 1\n")
    pytester.makepyfile(test_two="def test_a():\n    pass\n\ndef test_b():\n    assert len(bytearray(5000000))\n")
    outcome = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    text = outcome.stdout.str()
    assert "test_two.py::test_b" in text and "test_two.py::test_a" not in text, text
    assert "= heapr =" not in pytester.runpytest_subprocess("--heapr-hide-summary").stdout.str()


def test_traces_are_kept_where_asked(pytester):
    pytester.makepyfile(test_one="def test_it():\n    assert len(bytearray(1000))\n")
    pytester.runpytest_subprocess("--heapr", "--heapr-keep", "traces").assert_outcomes(passed=1)
    assert [path.name for path in (pytester.path / "traces").iterdir()] == ["test_one.py-test_it.heapr"]
