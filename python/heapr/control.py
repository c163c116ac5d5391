"""The socket of a session that runs: what is asked often is asked without a process of its own."""

import json
import os
import socket

from .program import HeaprError, ask_json

# Longest time for an answer, in seconds: that of the program.
_PATIENCE = 60
# Version of the protocol, which a session of another one refuses (docs/sessions.md).
_PROTOCOL = 1


class Control:
    """Asks one session."""

    def __init__(self, name):
        sessions = ask_json("status", name)["sessions"]
        self._folder, self._entry = os.path.split(sessions[0]["socket"])

    def update(self, sample, flush=False):
        """Changes the rate of the samples: ``"all"`` or ``"off"``. With ``flush`` the file can be read up to here."""
        change = {"add_pids": [], "remove_pids": [], "stacks": None, "sample": sample, "flush": flush}
        report = self._ask({"update": change})["updated"]
        failures = [failure for _, failure in report["failed"]] + [report["not_sampled"]]
        for failure in filter(None, failures):
            raise HeaprError(failure["message"])

    def _ask(self, request):
        line = json.dumps({"heapr": _PROTOCOL, "request": request}).encode() + b"\n"
        try:
            with self._connected() as connection:
                connection.sendall(line)
                with connection.makefile("rb") as answers:
                    answer = json.loads(answers.readline())["answer"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise HeaprError(f"session {self._entry}: {error}") from error
        if "failed" in answer:
            raise HeaprError(answer["failed"]["message"])
        return answer

    def _connected(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_PATIENCE)
        # The path of a socket may have 107 bytes: it is reached through its folder, however deep that is.
        folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        try:
            connection.connect(f"/proc/self/fd/{folder}/{self._entry}")
        except OSError:
            connection.close()
            raise
        finally:
            os.close(folder)
        return connection
