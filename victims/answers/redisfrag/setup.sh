#!/bin/sh
# redis-server of the distribution
set -u
d=${ANSWERS_CACHE:?}/redisfrag; cd "$(dirname "$0")" || exit 77
command -v python3 >/dev/null || exit 77
if ! ( command -v redis-server ) >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 77
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq -o DPkg::Lock::Timeout=300 update; apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends redis-server; } >/dev/null || exit 77
fi
redis-server --version | grep -q 'v=7\.0\..*malloc=jemalloc' || exit 77
mkdir -p "$d" || exit 77
