"""The command line, which does the work."""

import json
import os
import shutil
import subprocess
import sysconfig


class HeaprError(RuntimeError):
    """What heapr could not do, in its own words."""


def program():
    """Path of the program: what HEAPR says, this environment's, or the first in PATH."""
    named = os.environ.get("HEAPR")
    if named:
        return named
    own = os.path.join(sysconfig.get_path("scripts"), "heapr")
    found = own if os.access(own, os.X_OK) else shutil.which("heapr")
    if not found:
        raise HeaprError("no program heapr: it is neither in this environment nor in PATH, and HEAPR names none")
    return found


def ask(*arguments):
    """Runs a command to its end; what it prints."""
    # A traced process's children are not: nothing of them is asked for.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    outcome = subprocess.run(
        [program(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
    )
    if outcome.returncode != 0:
        said = outcome.stderr.decode("utf-8", "replace").strip()
        raise HeaprError(said or f"heapr {arguments[0]} ended with status {outcome.returncode}")
    return outcome.stdout


def ask_json(*arguments):
    """The same of a command that answers with JSON."""
    return json.loads(ask(*arguments, "--format", "json"))
