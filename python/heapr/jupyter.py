"""The cell magic ``%%heapr``: records a cell, and shows the page of what it allocated below it."""

import html
import os
import shutil
import tempfile

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import HTML, display

from .amounts import shown_size
from .program import ask
from .tracker import Tracker


@magics_class
class HeaprMagics(Magics):
    """Adds ``%%heapr [OPTIONS OF heapr view]``."""

    @cell_magic
    def heapr(self, line, cell):
        """Runs the cell while this process is recorded."""
        folder = tempfile.mkdtemp(prefix="heapr-")
        try:
            with Tracker(os.path.join(folder, "cell.heapr")) as tracker:
                self.shell.run_cell(cell)
            print(
                f"peak {shown_size(tracker.peak_bytes)}, not freed {shown_size(tracker.leaked_bytes)}, "
                f"{tracker.allocation_count:,} allocations"
            )
            page = os.path.join(folder, "page.html")
            ask("view", "--static", page, *line.split(), tracker.file_name)
            with open(page, encoding="utf-8") as file:
                text = html.escape(file.read(), quote=True)
            display(HTML(f'<div><iframe srcdoc="{text}" style="width: 100%; height: 600px; border: 0"></iframe></div>'))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
