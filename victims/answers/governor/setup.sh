#!/bin/sh
# builds prog.rs with cargo in the cache
set -u
d=${ANSWERS_CACHE:?}/governor; cd "$(dirname "$0")" || exit 77
command -v cargo >/dev/null || [ -x "$HOME/.cargo/bin/cargo" ] || exit 77
PATH=$PATH:$HOME/.cargo/bin; mkdir -p "$d"
for f in Cargo.toml prog.rs; do cmp -s $f "$d/$f" || cp $f "$d/$f" || exit 77; done
cargo build -q --release --manifest-path "$d/Cargo.toml" --target-dir "$d/target" || exit 77
