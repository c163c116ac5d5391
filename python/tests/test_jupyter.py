"""The cell magic in IPython's own shell, without a notebook's page."""

import pytest

pytest.importorskip("IPython")
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


@pytest.fixture
def shell():
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "heapr")
    yield shell
    InteractiveShell.clear_instance()


def test_a_cell_is_run_and_its_page_shown(shell):
    with capture_output() as shown:
        shell.run_cell_magic("heapr", "", "kept = [bytearray(1 << 20) for _ in range(5)]\nprint(len(kept))")
    assert len(shell.user_ns["kept"]) == 5
    assert shown.stdout.startswith("5\npeak 5."), shown.stdout
    [card] = shown.outputs
    page = card.data["text/html"]
    assert "<iframe srcdoc=" in page and "&lt;!doctype html&gt;" in page, page[:200]
    assert len(page) > 50000


def test_an_error_of_a_cell_is_shown_as_ever(shell):
    with capture_output() as shown:
        shell.run_cell_magic("heapr", "", "1 / 0")
    assert "ZeroDivisionError" in shown.stdout + shown.stderr
    assert "peak" in shown.stdout
