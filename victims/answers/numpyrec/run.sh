#!/bin/sh
cd "$(dirname "$0")" || exit 77
exec "$@" "$ANSWERS_CACHE/numpyrec/bin/python" prog.py 12000
