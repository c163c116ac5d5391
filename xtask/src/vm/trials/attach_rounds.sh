# Fifty rounds of attach and detach on each of five programs at work: none fails, no event is lost,
# and no mapping of the agent is left in them.

# Numbers of the agent's mappings, and of descriptors.
of_agent() { grep -c -e heapr -e memfd /proc/$1/maps || true; }
descriptors() { ls /proc/$1/fd | wc -l; }

# rounds NAME PID COUNT
rounds() {
  local name=$1 pid=$2 count=${ROUNDS:-$3} round began=$SECONDS descriptors_before=$(descriptors $2) events=0
  for round in $(seq $count); do
    rm -f $name.heapr
    # A machine under load may give a borrowed thread no processor for seconds; heapr says "try again".
    for attempt in 1 2 3; do
      heapr start $name --pid $pid -o $name.heapr > start.txt 2>&1 && break
      if [ $attempt = 3 ] || ! grep -q 'try again' start.txt; then cat start.txt; echo "$name: round $round"; exit 1; fi
      echo "= $name: round $round: $(tail -n 1 start.txt)"
      rm -f $name.heapr
    done
    sleep 0.2
    heapr stop $name > stop.txt 2>&1 || { cat stop.txt; echo "$name: round $round"; exit 1; }
    heapr info $name.heapr --format json > info.json
    jq -e '.loss | del(.events_late) | to_entries | all(.value == 0 or .value == false or .value == null)' info.json > lost.txt ||
      { jq -c .loss info.json; echo "$name: lost in round $round"; exit 1; }
    events=$((events + $(jq .event_count info.json)))
    [ $((round % 10)) != 0 ] || echo "= $name: round $round after $((SECONDS - began)) s"
    test "$(of_agent $pid)" = 0 || { grep -e heapr -e memfd /proc/$pid/maps; cat start.txt stop.txt; echo "$name: left in round $round"; exit 1; }
  done
  echo "= $name: $count rounds in $((SECONDS - began)) s, $events events, descriptors $descriptors_before before, $(descriptors $pid) after"
}

busy > busy.txt & pid=$!
sleep 1
rounds busy $pid 50
kill $pid
wait $pid
echo "= $(cat busy.txt)"
grep -q 'faults 0' busy.txt

redis-server --port 7000 --save '' --daemonize no > redis.txt 2>&1 & pid=$!
until redis-cli -p 7000 ping 2>/dev/null | grep -q PONG; do sleep 0.5; done
(while redis-benchmark -p 7000 -n 2000 -r 1000 -t set,lpush,get -q > benchmark.txt 2>&1; do echo x >> benchmarks.txt; done) & load=$!
rounds redis $pid 50
kill $load
redis-cli -p 7000 ping
kill $pid
wait $pid || true

cat > works.py <<'SCRIPT'
import signal, sys, threading
is_over = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: is_over.set())
def work(seed):
    while not is_over.is_set():
        kept = [bytes([seed]) * (513 + number) for number in range(200)]
        assert all(block[0] == seed and block[-1] == seed for block in kept)
threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
for thread in threads: thread.start()
while not is_over.wait(0.01): pass
for thread in threads: thread.join()
print("all right")
SCRIPT
python3 works.py > python.txt 2>&1 & pid=$!
sleep 2
rounds python $pid 50
kill $pid
wait $pid || { cat python.txt; exit 1; }
grep -q 'all right' python.txt

cat > works.js <<'SCRIPT'
let isOver = false;
process.on('SIGTERM', () => { isOver = true; });
function work() {
  const kept = [];
  for (let number = 0; number < 50; number++) kept.push(Buffer.allocUnsafeSlow(3000 + number).fill(number));
  kept.forEach((block, number) => { if (block[0] !== number || block[2999] !== number) throw new Error('changed'); });
  if (isOver) console.log('all right'); else setTimeout(work, 1);
}
work();
SCRIPT
node works.js > node.txt 2>&1 & pid=$!
sleep 5
rounds node $pid 50
kill $pid
wait $pid || { cat node.txt; exit 1; }
grep -q 'all right' node.txt

cat > works.rb <<'SCRIPT'
over = false
Signal.trap('TERM') { over = true }
until over
  kept = (0...200).map { |number| (number % 256).chr * (600 + number) }
  kept.each_with_index { |text, number| raise 'changed' unless text.getbyte(599) == number % 256 }
end
puts 'all right'
SCRIPT
ruby works.rb > ruby.txt 2>&1 & pid=$!
sleep 3
rounds ruby $pid 50
kill $pid
wait $pid || { cat ruby.txt; exit 1; }
grep -q 'all right' ruby.txt
