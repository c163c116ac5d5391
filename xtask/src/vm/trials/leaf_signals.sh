# Stacks through a signal frame and an interrupted function without a frame; every stack verified.
HEAPR_VERIFY=1 heapr run -o leaf.heapr -- leaf
heapr report leaf.heapr --size 123 124 --stacks --top 5 --depth 20 | tee stacks.txt
heapr info leaf.heapr --format json > info.json
jq -c .statistics info.json
jq -e '.statistics | .stacks_verified > 0 and .stacks_verified_mismatches == 0' info.json
grep -q 'calls_leaf' stacks.txt
