#!/bin/sh
# yajl 2.1.0 as its authors released it, from Debian's archive, where `make install` puts a library
set -u
d=${ANSWERS_CACHE:?}/yajl; lib=/usr/local/lib/heapr-answers; cd "$(dirname "$0")" || exit 77
command -v cc >/dev/null && command -v curl >/dev/null || exit 77
mkdir -p "$d" "$lib" 2>/dev/null && [ -w "$lib" ] || exit 77
if [ ! -f "$d/done" ] || [ ! -f "$lib/libyajl.so.2" ]; then
  curl -sSf -m 60 -o "$d/yajl.tar.gz" http://deb.debian.org/debian/pool/main/y/yajl/yajl_2.1.0.orig.tar.gz || exit 77
  echo "3fb73364a5a30efe615046d07e6db9d09fd2b41c763c5f7d3bfb121cd5c5ac5a  $d/yajl.tar.gz" | sha256sum -c --quiet || exit 77
  mkdir -p "$d/src" "$d/include/yajl" && tar -xzf "$d/yajl.tar.gz" -C "$d/src" --strip-components 1 || exit 77
  cp "$d"/src/src/api/*.h "$d/include/yajl" || exit 77
  printf '#define YAJL_MAJOR 2\n#define YAJL_MINOR 1\n#define YAJL_MICRO 0\n#define YAJL_VERSION 20100\nextern int yajl_version(void);\n' >"$d/include/yajl/yajl_version.h"
  cc -O2 -g -w -shared -fPIC -I"$d/include" -Wl,-soname,libyajl.so.2 -o "$lib/libyajl.so.2" "$d"/src/src/*.c || exit 77
  touch "$d/done"
fi
cc -O2 -g -I"$d/include" -o "$d/prog" prog.c "$lib/libyajl.so.2" -Wl,-rpath,"$lib" || exit 77
