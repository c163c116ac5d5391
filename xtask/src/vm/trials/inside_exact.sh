# Exact counts of a static program, and of one with an allocator of its own in it.
gcc -O1 -fno-builtin -pthread -static -o counts_static /work/trials/counts.c
gcc -O1 -fno-builtin -pthread -o counts_inside /work/trials/counts.c /usr/lib/*/libjemalloc_pic.a -lm -lstdc++ -ldl
failed=
# count NAME SIZES WANTED: blocks of these sizes.
count() {
  local found
  found=$(heapr report $1.heapr --size $2 --totals --format json | jq .totals.alloc_count) || found=none
  echo "= $1: $found of $3, $(heapr report $1.heapr --totals --format json | jq -c '[.heaps[].heap]')"
  [ "$found" = $3 ] || failed="$failed $1"
}
heapr run -q -o counts_static.heapr -- ./counts_static 2> static.txt && count counts_static "77 78" 1000 || failed="$failed static"
echo "= static: $(head -n 1 static.txt)"
heapr run -q -o counts_inside.heapr -- ./counts_inside && count counts_inside "77 78" 1000 || failed="$failed inside"
[ -z "$failed" ] || { echo "= not exact:$failed"; exit 1; }
