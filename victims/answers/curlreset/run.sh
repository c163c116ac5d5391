#!/bin/sh
cd "$(dirname "$0")" || exit 77
exec "$@" "$ANSWERS_CACHE/curlreset/prog" "$PWD/prog.c" 20000
