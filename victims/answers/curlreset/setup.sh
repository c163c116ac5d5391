#!/bin/sh
# builds prog.c with Debian 12's libcurl 7.88.1, which does not have the fix of 8.0.0
set -u
d=${ANSWERS_CACHE:?}/curlreset; cd "$(dirname "$0")" || exit 77
command -v cc >/dev/null && [ -f /usr/include/x86_64-linux-gnu/curl/curl.h ] || exit 77
grep -q '"7\.88\.[01]' /usr/include/x86_64-linux-gnu/curl/curlver.h || exit 77
mkdir -p "$d" && cc -O2 -g -o "$d/prog" prog.c -lcurl || exit 77
