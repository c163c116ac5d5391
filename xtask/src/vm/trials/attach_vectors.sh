# Attaches to, and detaches from, a program whose one thread has numbers in all vector registers.
vectors > vectors.txt & pid=$!
sleep 2
if kill -0 $pid 2>/dev/null; then
  for round in $(seq ${ROUNDS:-5}); do
    heapr start vectors --pid $pid -o vectors$round.heapr > start.txt 2>&1 || { cat start.txt; exit 1; }
    echo "= attached after $SECONDS s"
    sleep 0.2
    heapr stop vectors > stop.txt 2>&1 || { cat stop.txt; exit 1; }
    echo "= round $round after $SECONDS s"
  done
  kill $pid
fi
wait $pid || true
echo "= $(cat vectors.txt)"
grep -q 'faults 0' vectors.txt
