# A pod of the DaemonSet by runc, with what its file asks for, and an application's pod beside it
# that leaks.
victims=$(cat /work/place)/victims/deaths
root=/sys/fs/cgroup
echo +memory > $root/cgroup.subtree_control
id() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
bundle() { # folder: a root that only reads, of this machine's files
  mkdir -p $1/rootfs $1/work
  mount --bind / $1/rootfs
  mount --bind /work $1/rootfs/work
  (cd $1 && runc spec)
}
app=$(id) own=$(id)
mkdir -p /var/lib/heapr /run/heapr-pod
bundle /run/app
mkdir -p /run/app/data
g++ -g -O1 -fno-builtin -o /run/app/data/leak $victims/leak.cc
jq --arg cgroup /kubepods/burstable/pod12ab/$app '
  .process.args = ["/data/leak"] | .process.cwd = "/data" | .process.terminal = false
  | .process.env += ["HOSTNAME=shop-7f9c-x2k"] | .hostname = "shop-7f9c-x2k" | .root.readonly = true
  | .linux.cgroupsPath = $cgroup | .linux.resources.memory = {limit: 100663296, swap: 100663296}
  | .mounts += [{destination: "/data", type: "bind", source: "/run/app/data", options: ["rbind", "rw"]}]
' /run/app/config.json > /run/app/c && mv /run/app/c /run/app/config.json
mkdir -p /data
bundle /run/own
# hostPID, privileged, a root that only reads: as packaging/heapr-watch-daemonset.yaml has it.
all=$(grep -o 'CAP_[A-Z_]*' /usr/include/linux/capability.h | sort -u | grep -v LAST_CAP | jq -R . | jq -s .)
jq --arg cgroup /kubepods/pod34cd/$own --argjson all "$all" '
  .process.args = ["sh", "-c", "echo $$ > /run/heapr/watch.pid && exec /work/bin/heapr watch --containers --output /var/lib/heapr/incidents"]
  | .process.terminal = false | .process.env += ["HOME=/var/lib/heapr", "HEAPR_RUNTIME_DIR=/run/heapr"]
  | .process.noNewPrivileges = false
  | .process.capabilities = {bounding: $all, effective: $all, permitted: $all} | .root.readonly = true
  | .linux.namespaces = [{type: "mount"}, {type: "uts"}, {type: "ipc"}] | .linux.maskedPaths = [] | .linux.readonlyPaths = []
  | .linux.cgroupsPath = $cgroup | .linux.resources = {devices: [{allow: true, access: "rwm"}], memory: {limit: 268435456}}
  | .mounts |= map(select(.destination != "/sys/fs/cgroup"))
  | .mounts += [
      {destination: "/var/lib/heapr", type: "bind", source: "/var/lib/heapr", options: ["rbind", "rw"]},
      {destination: "/run/heapr", type: "bind", source: "/run/heapr-pod", options: ["rbind", "rw"]},
      {destination: "/sys/fs/cgroup", type: "bind", source: "/sys/fs/cgroup", options: ["rbind", "rw"]},
      {destination: "/dev/kmsg", type: "bind", source: "/dev/kmsg", options: ["bind"]}]
' /run/own/config.json > /run/own/c && mv /run/own/c /run/own/config.json
mkdir -p /run/heapr
chmod 700 /run/heapr-pod
runc --systemd-cgroup=false run -d --bundle /run/app app > app.txt 2>&1 < /dev/null || { cat app.txt; exit 1; }
sleep 5
runc run -d --bundle /run/own own > own.txt 2>&1 < /dev/null || { cat own.txt; exit 1; }
tries=0
until grep -q 'heapr: watching' own.txt || [ $tries -ge 120 ]; do sleep 1; tries=$((tries + 1)); done
cat own.txt
touch /run/app/data/go
tries=0
deaths() { heapr incidents --folder /var/lib/heapr/incidents --format json | jq '[.incidents[] | select(.kind == "death")] | length'; }
until [ "$(deaths)" -ge 1 ] || [ $tries -ge 60 ]; do sleep 1; tries=$((tries + 1)); done
number=$(heapr incidents --folder /var/lib/heapr/incidents --format json | jq '[.incidents[] | select(.kind == "death")][0].number')
heapr incidents $number --folder /var/lib/heapr/incidents --format json > pod.json
cat own.txt
runc kill own TERM || true
echo "= $(jq -r .sentences[0] pod.json)"
jq -c '.process | {host, container, group}' pod.json
test "$(jq -r .process.container pod.json)" = $app
test "$(jq -r .process.host pod.json)" = shop-7f9c-x2k
test "$(jq -r .cause.kind pod.json)" = kernel_group
jq -e '.sentences[0] | test("OrderCache::remember")' pod.json
