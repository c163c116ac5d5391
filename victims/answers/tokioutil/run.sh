#!/bin/sh
cd "$(dirname "$0")" || exit 77
exec "$@" "$ANSWERS_CACHE/tokioutil/target/release/prog" 100000
