# Deaths in control groups of version 2: the first sentence names the cause and the holder.
set -o pipefail
export HEAPR=/work/bin/heapr
xtask deaths cpp-leak python-dict ruby-texts node-buffers spike workers tmpfs sockets neighbour lowered-limit \
  | sed 's/^|/= |/'
