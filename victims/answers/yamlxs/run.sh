#!/bin/sh
cd "$(dirname "$0")" || exit 77
exec "$@" perl prog.pl 10000
