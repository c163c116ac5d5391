# A graph of redis's heap: copy, registers, stacks, thread-local variables.
redis-server --port 7000 --save '' --daemonize no > redis.txt 2>&1 & pid=$!
until redis-cli -p 7000 ping 2>/dev/null | grep -q PONG; do sleep 0.5; done
heapr start server --pid $pid -o redis.heapr
redis-benchmark -p 7000 -n 3000 -r 1000 -t set,lpush -q
heapr snapshot take --graph $pid
heapr stop server
heapr snapshot summary redis.heapr
heapr snapshot holders redis.heapr --top 5
redis-cli -p 7000 ping
kill $pid
wait $pid || true
