#!/bin/sh
cd "$(dirname "$0")" || exit 77
exec "$@" ruby prog.rb 15000
