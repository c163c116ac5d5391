# Runs each trial in turn; its output and its status go to the results.
export PATH=/work/bin:/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root LC_ALL=C.UTF-8
export XDG_RUNTIME_DIR=/run/heapr TMPDIR=/tmp
mkdir -p $XDG_RUNTIME_DIR
ldconfig
# Tests have the paths of the machine that built them.
if [ -e /work/place ]; then
  place=$(cat /work/place)
  mkdir -p "$(dirname "$place")"
  [ -e "$place" ] || ln -s /work/tree "$place"
fi
chmod 700 $XDG_RUNTIME_DIR
echo "kernel $(uname -r) on $(uname -m), $(nproc) processors, pages of $(getconf PAGESIZE) bytes"
while read -r trial; do
  rm -rf /tmp/trial && mkdir -p /tmp/trial
  begin=$SECONDS
  # What was measured is told at once: a machine that is ended later brings no results.
  : > /results/$trial.txt
  (tail -f /results/$trial.txt 2> /dev/null | grep --line-buffered -E '^(= |test .* \.\.\. )') & told=$!
  (cd /tmp/trial && timeout $(cat /work/seconds) bash -eu /work/trials/$trial.sh) > /results/$trial.txt 2>&1
  echo $? > /results/$trial.status
  sleep 1
  pkill -P $told
  echo "trial $trial: status $(cat /results/$trial.status), $((SECONDS - begin)) s"
  [ "$(cat /results/$trial.status)" = 0 ] || tail -n 20 /results/$trial.txt
done < /work/list
