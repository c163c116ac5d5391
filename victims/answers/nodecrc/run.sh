#!/bin/sh
cd "$(dirname "$0")" || exit 77
exec "$@" node prog.js 200000
