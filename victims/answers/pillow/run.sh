#!/bin/sh
cd "$(dirname "$0")" || exit 77
exec "$@" "$ANSWERS_CACHE/pillow/bin/python" prog.py 20000
