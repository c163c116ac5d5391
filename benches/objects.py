# Many small objects, dictionaries and strings; run with PYTHONMALLOC=malloc, so that each is an allocation.
import json


class Node:
    def __init__(self, name, children):
        self.name = name
        self.children = children


def tree(depth, name):
    if depth == 0:
        return Node(name, [])
    return Node(name, [tree(depth - 1, f"{name}.{i}") for i in range(3)])


def count(node):
    return 1 + sum(count(child) for child in node.children)


total = 0
for turn in range(14):
    root = tree(9, str(turn))
    total += count(root)
    words = {}
    for i in range(60000):
        words.setdefault(f"word{i % 5000}", []).append(str(i))
    total += len(json.loads(json.dumps(words)))
print(total)
