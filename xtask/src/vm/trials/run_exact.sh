# heapr run with a real kernel: exact counts, threads, and a child by fork.
heapr run -o counts.heapr -- counts
heapr report counts.heapr --size 77 78 --totals --format json > kept.json
heapr report counts.heapr --size 33 34 --totals --format json > passed.json
heapr report counts.heapr --size 77 78 --functions --top 3
heapr run -o forks.heapr -- forks
heapr report forks.heapr --size 55 56 --totals --format json > forks.json
heapr info forks.heapr
HEAPR_VERIFY=1 heapr run -o verify.heapr -- counts
heapr info verify.heapr --format json > verify.json
jq -c .statistics verify.json
jq -e '.statistics | .stacks_verified > 0 and .stacks_verified_mismatches == 0' verify.json
for file in kept passed forks; do echo "= $file $(jq -c '.totals | {alloc_count, outstanding_count, free_count}' $file.json)"; done
# What the programs' sources say: 1,000 blocks of 77 bytes, 1,000 of 33, 100 of 55 in each process.
test "$(jq '.totals.alloc_count' kept.json)" = 1000
test "$(jq '.totals.alloc_count' passed.json)" = 1000
test "$(jq '.totals.alloc_count' forks.json)" = 200
