#!/bin/sh
# dateparser==1.1.6 tzlocal==4.2 regex==2022.10.31 in a virtual environment of Python 3.11
set -u
d=${ANSWERS_CACHE:?}/dateparser; cd "$(dirname "$0")" || exit 77
if [ ! -f "$d/done" ]; then
  p=$(ls -d "$HOME"/.pyenv/versions/3.11.*/bin/python 2>/dev/null | tail -n 1); [ -n "$p" ] || p=$(command -v python3.11) || exit 77
  rm -rf "$d"; "$p" -m venv "$d" || exit 77
  "$d/bin/python" -m pip -q --disable-pip-version-check install --only-binary :all: dateparser==1.1.6 tzlocal==4.2 regex==2022.10.31 || exit 77
  touch "$d/done"
fi
exit 0
