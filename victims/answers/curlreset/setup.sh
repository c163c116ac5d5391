#!/bin/sh
# builds prog.c with Debian 12's libcurl 7.88.1, which does not have the fix of 8.0.0
set -u
d=${ANSWERS_CACHE:?}/curlreset; cd "$(dirname "$0")" || exit 77
command -v cc >/dev/null || exit 77
if ! [ -f /usr/include/x86_64-linux-gnu/curl/curl.h ]; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 77
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq -o DPkg::Lock::Timeout=300 update; apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends libcurl4-openssl-dev; } >/dev/null || exit 77
fi
grep -q '"7\.88\.[01]' /usr/include/x86_64-linux-gnu/curl/curlver.h || exit 77
mkdir -p "$d" && cc -O2 -g -o "$d/prog" prog.c -lcurl || exit 77
