# Fifty rounds of attach and detach on a busy program: it never fails, and nothing is left in it.
export HEAPR_UNTRIED_ATTACH=1
busy > busy.txt & pid=$!
sleep 1
before=$(grep -c . /proc/$pid/maps)
for round in $(seq 50); do
  rm -f round.heapr
  heapr start round --pid $pid -o round.heapr > start.txt 2>&1 || { cat start.txt; echo "round $round"; exit 1; }
  sleep 0.1
  heapr stop round > stop.txt 2>&1 || { cat stop.txt; echo "round $round"; exit 1; }
  heapr info round.heapr > info.txt
  grep -i 'lost' info.txt || true
done
after=$(grep -c . /proc/$pid/maps)
cat info.txt
kill $pid
wait $pid
echo "= 50 rounds: $(cat busy.txt), $before mappings before and $after after"
grep -q 'faults 0' busy.txt
