# Attaches to a busy program, looks at it, and detaches.
busy > busy.txt & pid=$!
sleep 1
heapr start one --pid $pid -o one.heapr
heapr status one
sleep 1
heapr stop one
heapr report one.heapr --functions --top 5
grep -c heapr /proc/$pid/maps || true
kill $pid
wait $pid
echo "= $(cat busy.txt)"
grep -q 'faults 0' busy.txt
heapr report one.heapr --functions --top 20 | grep -q round_of
