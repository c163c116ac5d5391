#!/bin/sh
# frozendict==2.3.2 in a virtual environment of Python 3.8
set -u
d=${ANSWERS_CACHE:?}/frozendict; cd "$(dirname "$0")" || exit 77
if [ ! -f "$d/done" ]; then
  p=$(ls -d "$HOME"/.pyenv/versions/3.8.*/bin/python 2>/dev/null | tail -n 1); [ -n "$p" ] || p=$(command -v python3.8) || exit 77
  rm -rf "$d"; "$p" -m venv "$d" || exit 77
  "$d/bin/python" -m pip -q --disable-pip-version-check install --only-binary :all: frozendict==2.3.2 || exit 77
  touch "$d/done"
fi
exit 0
