#!/bin/sh
# builds prog.cc with Debian 12's yaml-cpp 0.7.0
set -u
d=${ANSWERS_CACHE:?}/yamlcpp; cd "$(dirname "$0")" || exit 77
command -v c++ >/dev/null || exit 77
if ! [ -f /usr/include/yaml-cpp/yaml.h ]; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 77
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq -o DPkg::Lock::Timeout=300 update; apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends libyaml-cpp-dev; } >/dev/null || exit 77
fi
dpkg -s libyaml-cpp0.7 2>/dev/null | grep -q '^Version: 0\.7\.' || exit 77
mkdir -p "$d" && c++ -O2 -g -o "$d/prog" prog.cc -lyaml-cpp || exit 77
