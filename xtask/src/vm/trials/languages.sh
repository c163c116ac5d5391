# Frames of languages: function and line of each of fifty blocks of a script's own.
cat > kept.py <<'SCRIPT'
kept = []
def keep(count):
    for _ in range(count):
        kept.append(bytearray(7777))
keep(50)
SCRIPT
cat > kept.js <<'SCRIPT'
const kept = [];
function keep(count) {
  for (let number = 0; number < count; number++) {
    kept.push(Buffer.allocUnsafeSlow(7777));
  }
}
keep(50);
SCRIPT
cat > Kept.java <<'SCRIPT'
public class Kept {
    static java.util.ArrayList<Object> kept = new java.util.ArrayList<>();
    static void keep(int count) {
        for (int number = 0; number < count; number++)
            kept.add(java.nio.ByteBuffer.allocateDirect(7777));
    }
    public static void main(String[] arguments) {
        keep(50);
    }
}
SCRIPT
cat > kept.rb <<'SCRIPT'
$kept = []
def keep(count)
  count.times { $kept << "x" * 7777 }
end
keep(50)
SCRIPT
cat > kept.pl <<'SCRIPT'
my @kept;
sub keep {
    my ($count) = @_;
    for my $number (1 .. $count) {
        push @kept, "x" x (7776 + $number % 2);
    }
}
keep(50);
SCRIPT
cat > kept.php <<'SCRIPT'
<?php
$kept = [];
function keep($count) {
    global $kept;
    for ($number = 0; $number < $count; $number++) {
        $kept[] = str_repeat("x", 7777);
    }
}
keep(50);
SCRIPT
cat > kept.lua <<'SCRIPT'
kept = {}
function keep(count)
  for number = 1, count do
    kept[#kept + 1] = string.rep("x", 7777) .. number
  end
end
keep(50)
SCRIPT
failed=
# frames NAME FILE:LINE PROGRAM…: at least 45 blocks have the function and the line.
frames() {
  local name=$1 place=$2 began=$SECONDS
  shift 2
  timeout 600 heapr run -q -o $name.heapr -- "$@" > $name.txt 2>&1 || true
  heapr report $name.heapr --size 7700 7900 --stacks --format json > $name.json || true
  local count=$(jq --arg file ${place%:*} --argjson line ${place#*:} '[.groups[]
    | select(any(.frames[]; ((.symbol // "") | test("keep")) and .line == $line and ((.file // "") | endswith($file))))
    | .total_count] | add // 0' $name.json || true)
  echo "= $name: $count blocks with function and line, $((SECONDS - began)) s"
  if [ "${count:-0}" -lt 45 ]; then
    failed="$failed $name"
    heapr report $name.heapr --size 7700 7900 --stacks --top 1 | head -24 || true
  fi
}

frames python kept.py:4 python3 kept.py
frames ruby kept.rb:3 ruby kept.rb
frames perl kept.pl:5 perl kept.pl
frames lua5.4 kept.lua:4 lua5.4 kept.lua
frames lua5.1 kept.lua:4 lua5.1 kept.lua
frames php kept.php:6 php kept.php
javac Kept.java
frames java Kept.java:5 java -Xint Kept
frames node kept.js:4 node kept.js
[ -z "$failed" ] || { echo "= without frames:$failed"; exit 1; }
