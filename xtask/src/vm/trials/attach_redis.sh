# Attaches to redis at work: functions have names, and the server answers as before.
redis-server --port 7000 --save '' --daemonize no > redis.txt 2>&1 & pid=$!
until redis-cli -p 7000 ping 2>/dev/null | grep -q PONG; do sleep 0.5; done
redis-benchmark -p 7000 -n 3000 -r 1000 -t set,lpush -q > before.txt
heapr start server --pid $pid -o redis.heapr
redis-benchmark -p 7000 -n 3000 -r 1000 -t set,lpush -q > during.txt
heapr stop server
redis-cli -p 7000 ping
heapr report redis.heapr --functions --top 5
kill $pid
wait $pid || true
