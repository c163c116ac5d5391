# heapr run with a real kernel: exact counts, threads, and a child by fork.
heapr run -o counts.heapr -- counts
count() { heapr report "$1" --stacks --format json --top 100000 $2 | jq "[.rows[] | select(.size_bytes == $3 or true)] | length"; }
heapr report counts.heapr --size 77 77 --totals --format json > kept.json
heapr report counts.heapr --size 33 33 --totals --format json > passed.json
heapr report counts.heapr --size 77 77 --functions --top 3
cat kept.json passed.json
heapr run -o forks.heapr -- forks
heapr report forks.heapr --size 55 55 --totals --format json > forks.json
cat forks.json
heapr info forks.heapr
HEAPR_VERIFY=1 heapr run -o verify.heapr -- counts
heapr info verify.heapr | grep -i verif
for file in kept passed forks; do echo "= $file $(jq -c . $file.json)"; done
