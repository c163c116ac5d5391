#!/bin/sh
# ruby-commonmarker 0.23.6 of Debian 12
set -u
cd "$(dirname "$0")" || exit 77
if ! ( ruby -rcommonmarker -e 1 ) >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 77
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq -o DPkg::Lock::Timeout=300 update; apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends ruby ruby-commonmarker; } >/dev/null || exit 77
fi
ruby -rcommonmarker -e 'exit CommonMarker::VERSION == "0.23.6"' >/dev/null 2>&1 || exit 77
