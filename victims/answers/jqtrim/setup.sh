#!/bin/sh
# builds prog.c with Debian 12's libjq 1.6, which does not have the fix of 1.7.1
set -u
d=${ANSWERS_CACHE:?}/jqtrim; cd "$(dirname "$0")" || exit 77
command -v cc >/dev/null && [ -f /usr/include/jq.h ] || exit 77
dpkg -s libjq1 2>/dev/null | grep -q '^Version: 1\.6-' || exit 77
mkdir -p "$d" && cc -O2 -g -o "$d/prog" prog.c -ljq || exit 77
