#!/bin/sh
# ruby ruby-nokogiri of the distribution
set -u
cd "$(dirname "$0")" || exit 77
if ! ( ruby -e 'require "nokogiri"' ) >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 77
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq -o DPkg::Lock::Timeout=300 update; apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends ruby ruby-nokogiri; } >/dev/null || exit 77
fi
exit 0
