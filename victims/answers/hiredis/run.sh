#!/bin/sh
cd "$(dirname "$0")" || exit 77
exec "$@" "$ANSWERS_CACHE/hiredis/bin/python" prog.py 12000
