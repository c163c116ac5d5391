"""One recording of this process for many blocks of code, one after the other.

Attaching costs more than most tests. So the process stays attached to, and between two blocks nothing is recorded:
the session's sampling is switched between all and off.
"""

import os
import shutil
import subprocess
import tempfile

from .control import Control
from .own_process import may_be_traced
from .program import HeaprError, ask, program

# Size of the file at which the next block begins another one: the begin of a block is looked for in all of it.
_FILE_BYTES_MAX = 8 << 20
# Ends the session when this process has ended by any means: the pipe is closed then. It is nobody's child.
_WATCH = 'exec 3<&0; (read _ <&3; "$0" cancel "$1"; rm -rf "$2") >/dev/null 2>&1 &'

_present = None


def of_this_process():
    """The recording of this process, begun if need be; a forked process has one of its own."""
    global _present
    if _present is not None and not _present.is_usable():
        end()
    if _present is None:
        _present = SharedRecording()
    return _present


def end():
    """Ends the recording of this process, if there is one."""
    global _present
    if _present is not None:
        present, _present = _present, None
        present.close()


class SharedRecording:
    """A session whose recording is switched on and off."""

    def __init__(self):
        self._pid = os.getpid()
        self._name = f"python-{self._pid}-shared-{os.urandom(4).hex()}"
        self._folder = tempfile.mkdtemp(prefix="heapr-")
        self.file_name = os.path.join(self._folder, "shared.heapr")
        self._is_on = True
        self._watch = None
        try:
            ask("start", self._name, "--pid", str(self._pid), "--mmap", "--no-follow", "--sample", "all", "-o", self.file_name)
            self._watch = subprocess.Popen(
                ["sh", "-c", _WATCH, program(), self._name, self._folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._watch.wait()
            self._control = Control(self._name)
        except BaseException:
            self.close()
            raise

    def is_usable(self):
        """Whether another block can be recorded into the same file."""
        try:
            return self._pid == os.getpid() and os.path.getsize(self.file_name) < _FILE_BYTES_MAX
        except OSError:
            return False

    def on(self):
        """Records from here on."""
        if not self._is_on:
            self._control.update("all")
            self._is_on = True

    def off(self):
        """Records nothing from here on; the file can be read up to here."""
        self._control.update("off", flush=True)
        self._is_on = False

    def close(self):
        """Lets the process go, and removes the file. A forked process leaves both to its parent."""
        if self._watch is not None:
            self._watch.stdin.close()
        if self._pid != os.getpid():
            return
        try:
            with may_be_traced():
                ask("cancel", self._name)
        except HeaprError:
            # It was ended by someone else.
            pass
        shutil.rmtree(self._folder, ignore_errors=True)
