"""pytest: limits on what a test allocates and leaks, and ``--heapr`` for where it went.

    @pytest.mark.limit_memory("24 MB")   the test's peak
    @pytest.mark.limit_leaks("1 MB")     what any one place allocates in the test and does not free
"""

import functools
import gc
import inspect

import pytest

from . import shared_recording
from .amounts import parse_size, shown_size
from .program import HeaprError
from .tracker import Tracker

_MARKERS = {
    "limit_memory": "limit_memory(limit, current_thread_only=False): fails a test whose peak is larger",
    "limit_leaks": "limit_leaks(limit, filter_fn=None, current_thread_only=False): fails a test of which any one stack leaks more",
}
_RESULT = "heapr"
# Frames that are shown of a stack, and stacks of a test.
_FRAMES, _STACKS = 8, 10
# A place is where Python's or a library's code stands: the interpreter's own frames are left out.
_PLACES = ("--lang-frames", "own")


def pytest_addoption(parser):
    group = parser.getgroup("heapr")
    group.addoption("--heapr", action="store_true", help="record each test, and show the top allocations of those with most")
    group.addoption("--heapr-top", type=int, metavar="N", help="tests and allocations that are shown; 0: all tests (default: 5)")
    group.addoption("--heapr-hide-summary", action="store_true", help="record each test, and show nothing of those that pass")
    group.addoption("--heapr-frames", type=int, default=_FRAMES, metavar="N", help="frames that are shown of a stack")
    group.addoption("--heapr-keep", metavar="FOLDER", help="keep the trace of each recorded test there")
    parser.addini("heapr", "record each test, as --heapr does", type="bool", default=False)
    parser.addini("heapr_top", "tests and allocations that are shown, as --heapr-top", default="5")


def _records_all(config):
    return config.getoption("--heapr") or config.getini("heapr")


def _top(config):
    given = config.getoption("--heapr-top")
    return int(config.getini("heapr_top")) if given is None else given


def _limits_of_pytest_memray(config):
    """pytest-memray has markers of the same names: where it is active, they are its own."""
    return config.pluginmanager.has_plugin("memray_manager")


def pytest_configure(config):
    for line in _MARKERS.values():
        config.addinivalue_line("markers", line)


def pytest_unconfigure(config):
    shared_recording.end()


def _limits(item):
    if _limits_of_pytest_memray(item.config):
        return []
    return [marker for marker in item.iter_markers() if marker.name in _MARKERS]


def _wrong(marker):
    """What is wrong with the arguments of a marker; None: nothing."""
    judge = _JUDGES[marker.name]
    try:
        given = inspect.signature(judge).bind(None, None, *marker.args, **marker.kwargs)
        parse_size(given.arguments["limit"])
    except (TypeError, ValueError, AttributeError) as error:
        return f"heapr: {marker.name}: {error}"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    # A marker that makes no sense is an error of its test alone.
    for marker in _limits(item):
        wrong = _wrong(marker)
        if wrong:
            pytest.fail(wrong, pytrace=False)


def _trace_file(item):
    folder = item.config.getoption("--heapr-keep")
    if not folder:
        return None
    import os
    import re

    os.makedirs(folder, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9_.=-]+", "-", item.nodeid).strip("-")[-200:]
    path = os.path.join(folder, f"{name}.heapr")
    if os.path.lexists(path):
        os.remove(path)
    return path


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    limits = _limits(pyfuncitem)
    if not limits and not _records_all(pyfuncitem.config):
        yield
        return
    function = pyfuncitem.obj
    leaks = any(marker.name == "limit_leaks" for marker in limits)
    file_name = _trace_file(pyfuncitem)
    tracker = Tracker(file_name, is_one_of_many=file_name is None)

    def settle():
        # A circle that the collector has yet to find is no leak.
        if leaks:
            gc.collect()

    @functools.wraps(function)
    def recorded(*args, **kwargs):
        pyfuncitem.obj = function
        settle()
        with tracker:
            try:
                return function(*args, **kwargs)
            finally:
                settle()

    @functools.wraps(function)
    async def recorded_async(*args, **kwargs):
        pyfuncitem.obj = function
        settle()
        with tracker:
            try:
                return await function(*args, **kwargs)
            finally:
                settle()

    pyfuncitem.obj = recorded_async if inspect.iscoroutinefunction(function) else recorded
    pyfuncitem._heapr_tracker = tracker
    try:
        yield
    finally:
        pyfuncitem.obj = function


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    tracker = getattr(item, "_heapr_tracker", None)
    if call.when != "call" or tracker is None:
        return
    del item._heapr_tracker
    report = outcome.get_result()
    try:
        _judge(item, report, tracker)
    except (HeaprError, ValueError) as error:
        if report.outcome == "passed":
            report.outcome, report.longrepr = "failed", f"heapr: {error}"
    finally:
        tracker.close()


def _judge(item, report, tracker):
    if report.outcome == "passed":
        for marker in _limits(item):
            failure = _JUDGES[marker.name](item, tracker, *marker.args, **marker.kwargs)
            if failure is not None:
                text, title, allocations = failure
                report.outcome, report.longrepr = "failed", text
                report.sections.append((f"heapr: {title}", _listed(item, allocations)))
                break
    if _records_all(item.config):
        top = _top(item.config) or _STACKS
        # Asked first: the answer has the totals, too.
        allocations = tracker.allocations("peak", max(top, _STACKS), _PLACES)[:top]
        result = {
            "test": item.nodeid,
            "peak_bytes": tracker.peak_bytes,
            "leaked_bytes": tracker.leaked_bytes,
            "allocation_count": tracker.allocation_count,
            "allocations": [
                [one.size_bytes, one.block_count, [str(frame) for frame in one.frames]]
                for one in allocations
            ],
        }
        # With pytest-xdist reports cross to another process, and this goes with them.
        report.user_properties.append((_RESULT, result))


def _too_much(item, tracker, limit, current_thread_only=False):
    limit_bytes = parse_size(limit)
    options = ("--thread", str(tracker.thread_id)) if current_thread_only else ()
    peak_bytes = tracker.totals(*options)["peak_bytes"]
    if peak_bytes <= limit_bytes:
        return None
    text = f"Test was limited to {shown_size(limit_bytes)} but allocated {shown_size(peak_bytes)} at its peak"
    return text, "allocations at the peak", tracker.allocations("peak", options=(*options, *_PLACES))


def _leaks(item, tracker, limit, filter_fn=None, current_thread_only=False):
    limit_bytes = parse_size(limit)
    options = ("--thread", str(tracker.thread_id)) if current_thread_only else ()
    # Those that a filter takes away may hide others.
    top = _STACKS if filter_fn is None else None
    leaks = [one for one in tracker.allocations("leaked", top, (*options, *_PLACES)) if one.size_bytes > limit_bytes]
    if filter_fn is not None:
        leaks = [one for one in leaks if filter_fn(one)]
    if not leaks:
        return None
    text = (
        f"Test was allowed to leak {shown_size(limit_bytes)} per location but at least one location leaked "
        f"{shown_size(leaks[0].size_bytes)}"
    )
    return text, "leaked allocations", leaks[:_STACKS]


_JUDGES = {"limit_memory": _too_much, "limit_leaks": _leaks}


def _listed(item, allocations):
    shown = item.config.getoption("--heapr-frames")
    lines = []
    for one in allocations:
        lines.append(f"{shown_size(one.size_bytes)} in {one.block_count} blocks allocated here:")
        lines += [f"    {frame}" for frame in one.frames[:shown]]
        if len(one.frames) > shown:
            lines.append(f"    … {len(one.frames) - shown} more")
    return "\n".join(lines)


def pytest_terminal_summary(terminalreporter, config):
    if not _records_all(config) or config.getoption("--heapr-hide-summary"):
        return
    results = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == _RESULT
    ]
    results.sort(key=lambda result: -result["peak_bytes"])
    top, shown = _top(config), config.getoption("--heapr-frames")
    terminalreporter.write_sep("=", "heapr")
    for result in results[: top or None]:
        terminalreporter.write_line(result["test"])
        terminalreporter.write_line(
            f"    peak {shown_size(result['peak_bytes'])}, not freed {shown_size(result['leaked_bytes'])}, "
            f"{result['allocation_count']:,} allocations"
        )
        for size_bytes, block_count, frames in result["allocations"]:
            terminalreporter.write_line(f"    {shown_size(size_bytes):>10} in {block_count} blocks  {' <- '.join(frames[:shown])}")
