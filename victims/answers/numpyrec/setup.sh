#!/bin/sh
# numpy==1.15.2 in a virtual environment of Python 3.7
set -u
d=${ANSWERS_CACHE:?}/numpyrec; cd "$(dirname "$0")" || exit 77
if [ ! -f "$d/done" ]; then
  p=$(ls -d "$HOME"/.pyenv/versions/3.7.*/bin/python 2>/dev/null | tail -n 1); [ -n "$p" ] || p=$(command -v python3.7) || exit 77
  rm -rf "$d"; "$p" -m venv "$d" || exit 77
  "$d/bin/python" -m pip -q --disable-pip-version-check install --only-binary :all: numpy==1.15.2 || exit 77
  touch "$d/done"
fi
exit 0
