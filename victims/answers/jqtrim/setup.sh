#!/bin/sh
# builds prog.c with Debian 12's libjq 1.6, which does not have the fix of 1.7.1
set -u
d=${ANSWERS_CACHE:?}/jqtrim; cd "$(dirname "$0")" || exit 77
command -v cc >/dev/null || exit 77
if ! [ -f /usr/include/jq.h ]; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 77
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq -o DPkg::Lock::Timeout=300 update; apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends libjq-dev libonig-dev; } >/dev/null || exit 77
fi
dpkg -s libjq1 2>/dev/null | grep -q '^Version: 1\.6-' || exit 77
mkdir -p "$d" && cc -O2 -g -o "$d/prog" prog.c -ljq || exit 77
