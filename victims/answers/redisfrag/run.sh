#!/bin/sh
cd "$(dirname "$0")" || exit 77
d=${ANSWERS_CACHE:?}/redisfrag
rm -f "$d/socket"
python3 prog.py "$d/socket" 200000 &
exec "$@" redis-server --port 0 --unixsocket "$d/socket" --save "" --daemonize no --dir "$d"
