"""Interpreters within one process, one after another and side by side. Each allocates blocks whose sizes say which function
and line asked for them, and writes what they stand for: as lines.py does. Their functions are as long as one another and lie
at other lines, so that code of a later one can lie where that of an earlier one lay, with the same version.
"""

import sys
import threading

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

FIRST = 100_000

PROGRAM = """
import json
{blank}
def plain{number:02}():
    return bytearray({size})
class Shelf{number:02}:
    def method(self):
        return [bytearray({size} + 8) for _ in range(2)]
def recursive{number:02}(depth):
    if depth:
        recursive{number:02}(depth - 1)
    return bytearray({size} + 16)
for _ in range(10):
    plain{number:02}()
    Shelf{number:02}().method()
    recursive{number:02}(9)
line = {line}
method = "Shelf{number:02}.method"
told = [
    ({size}, line, "plain{number:02}", 10),
    ({size} + 8, line + 3, {comprehension}, 20),
    ({size} + 16, line + 7, {recursive}, 100),
]
with open({out!r}, "a") as file:
    for size, line, name, blocks in told:
        told = dict(bytes=size + 1, file="<program {number:02}>", line=line, function=name, blocks=blocks)
        file.write(json.dumps(told) + "\\n")
"""


def run(number):
    """One interpreter, from its making to its end."""
    has_qualified = sys.version_info >= (3, 11)
    method = "Shelf%02d.method" % number if has_qualified else "method"
    # From 3.12 on a comprehension is no function of its own.
    listed = method if sys.version_info >= (3, 12) else method + ".<locals>.<listcomp>" if has_qualified else "<listcomp>"
    blank = number % 4
    source = PROGRAM.format(
        number=number,
        blank="\n" * blank,
        size=FIRST + 24 * number,
        line=5 + blank,
        comprehension=repr(listed),
        recursive=repr("recursive%02d" % number),
        out=sys.argv[1],
    )
    made = interpreters.create()
    run_in = getattr(interpreters, "exec", None) or interpreters.run_string
    failed = run_in(made, "exec(compile(%r, '<program %02d>', 'exec'))" % (source, number))
    assert not failed, failed
    interpreters.destroy(made)


def main():
    open(sys.argv[1], "w").close()
    for number in range(24):
        run(number)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(24, 28)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
