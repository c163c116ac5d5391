#!/bin/sh
cd "$(dirname "$0")" || exit 77
exec "$@" php prog.php 40000
