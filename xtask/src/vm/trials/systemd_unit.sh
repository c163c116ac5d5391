# The package's unit, under systemd as the first process: a service that leaks is told before and
# after a reload of the watch, and after a crash of it.
victims=$(cat /work/place)/victims/deaths
dpkg --unpack --force-all /work/heapr.deb > dpkg.txt 2>&1 || cat dpkg.txt
ls -l /usr/bin/heapr /usr/lib/systemd/system/heapr-watch@.service
systemctl --version | head -1
mkdir -p /srv/web
g++ -g -O1 -fno-builtin -o /srv/web/leak $victims/leak.cc
cat > /etc/systemd/system/web.service <<UNIT
[Service]
# It waits for its file, so that the watch has attached.
ExecStart=/srv/web/leak
WorkingDirectory=/srv/web
MemoryMax=96M
MemorySwapMax=0
UNIT
systemctl daemon-reload
deaths() { heapr incidents --folder /var/lib/heapr/web/incidents --format json | jq '[.incidents[] | select(.kind == "death")] | length'; }
die() { # number of deaths after it
  rm -f /srv/web/go
  systemctl reset-failed web 2> /dev/null || true
  systemctl start web
  sleep 8
  touch /srv/web/go
  tries=0
  until [ "$(deaths)" -ge $1 ] || [ $tries -ge 60 ]; do sleep 1; tries=$((tries + 1)); done
  test "$(deaths)" = $1
}
systemctl start web
sleep 2
systemctl start heapr-watch@web
until journalctl --no-pager -u heapr-watch@web | grep -q 'heapr: watching'; do sleep 1; done
systemctl --no-pager status heapr-watch@web || true
systemctl show -p CapabilityBoundingSet,ProtectSystem,MemoryMax heapr-watch@web
touch /srv/web/go
tries=0
until [ "$(deaths)" -ge 1 ] || [ $tries -ge 200 ]; do sleep 1; tries=$((tries + 1)); done
systemctl reload heapr-watch@web
sleep 10
die 2
systemctl kill --kill-whom=main -s KILL heapr-watch@web
sleep 10
die 3
for number in 1 2 3; do
  heapr incidents $number --folder /var/lib/heapr/web/incidents --format json > $number.json || continue
  echo "= $(jq -r .sentences[0] $number.json)"
done
journalctl --no-pager -u heapr-watch@web | tail -30
heapr incidents --folder /var/lib/heapr/web/incidents --format json | jq -r '.incidents[] | select(.kind == "death") | .sentence' > told.txt
test "$(wc -l < told.txt)" = 3
test "$(grep -c 'killed by the kernel' told.txt)" = 3
test "$(grep -c 'OrderCache::remember' told.txt)" = 3
systemctl stop heapr-watch@web
# Nothing of it is left: the recorder has ended, too.
sleep 5
! pgrep -x heapr
