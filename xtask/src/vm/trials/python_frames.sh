# Frames of Python: functions and lines of a script's blocks.
cat > kept.py <<'SCRIPT'
kept = []
def keep(count):
    for _ in range(count):
        kept.append(bytearray(7777))
keep(500)
SCRIPT
heapr run -o python.heapr -- python3 kept.py
heapr report python.heapr --size 7778 7779 --functions --lang-frames own --top 5 | tee functions.txt
grep -q 'keep' functions.txt
