# What version 2 alone has: a group that is killed as a whole, a soft limit, and pressure.
root=/sys/fs/cgroup
victims=$(cat /work/place)/victims/deaths
echo +memory > $root/cgroup.subtree_control
group() { # name, file=value…
  mkdir $root/$1
  for pair in memory.swap.max=0 "${@:2}"; do echo ${pair#*=} > $root/$1/${pair%%=*} || true; done
}
start() { # group, command…
  (echo $BASHPID > $root/$1/cgroup.procs; shift; exec "$@") & pid=$!
}
watched() { # group, further words: starts a watch and waits until it watches
  heapr watch --cgroup /$1 -o $1 "${@:2}" 2> $1.said & watch=$!
  until grep -q 'heapr: watching' $1.said; do sleep 0.2; done
}
# The first one that is there: an incident of a death takes the place of its warning.
first() {
  local number=$(heapr incidents --folder $1 --format json | jq '[.incidents[].number] | min // 1')
  heapr incidents $number --folder $1 --format json || { cat $1.said >&2; exit 1; }
}

group whole memory.max=160M memory.oom.group=1
start whole python3 $victims/workers.py
sleep 5
watched whole --until-end
touch go
wait $watch || true
first whole > whole.json
echo "= $(jq -r .sentences[0] whole.json)"
# On a slow machine the four ends are seen one after the other: then they have several incidents.
told=0
for file in whole/incident-*.json; do
  test "$(jq -r .kind $file)" = death || continue
  test "$(jq -r .cause.kind $file)" = kernel_whole_group
  told=$((told + 1 + $(jq '.ended_with | length' $file)))
done
echo "= $told deaths of the whole group told"
test $told = 4
rm go

# Above a soft limit the kernel slows a program down and takes memory back: nobody is killed.
g++ -g -O1 -fno-builtin -o leak $victims/leak.cc
group soft memory.high=48M memory.max=512M
start soft ./leak
sleep 2
watched soft
touch go
tries=0
until [ "$(heapr incidents --folder soft --format json | jq '.incidents | length')" -ge 1 ] || [ $tries -ge 120 ]; do
  sleep 1; tries=$((tries + 1))
done
first soft > soft.json
echo "= $(jq -r .sentences[0] soft.json)"
jq -c '.trigger, .group.events, .holders[0].name' soft.json
test "$(jq -r .trigger.trigger soft.json)" = soft_limit
jq -e '.holders[0].name | test("OrderCache::remember")' soft.json
kill $watch && wait $watch || true
kill -9 $pid
