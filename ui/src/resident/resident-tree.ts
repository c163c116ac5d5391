/**
 * Converts the lines of resident memory into the nodes of a treemap: classes, in them their parts.
 */
import type { SavedLine, TreemapAnswer } from '../api/types';

export interface ResidentTree extends TreemapAnswer {
  /** Key of the class of each node; empty for the whole. */
  classes: string[];
}

export function residentTree(lines: SavedLine[], of: string): ResidentTree {
  const halves: number[] = [];
  const tree: ResidentTree = { names: [], nodes: { id: [], parent: [], name: [], value: [], self: [], left_out: [], value_plus_minus: halves }, classes: [] };
  const push = (id: string | null, parent: number, name: string, value: number, classKey: string, half = 0): number => {
    tree.names.push(name);
    tree.classes.push(classKey);
    tree.nodes.id.push(id);
    tree.nodes.parent.push(parent);
    tree.nodes.name.push(tree.names.length - 1);
    tree.nodes.value.push(value);
    halves.push(half);
    tree.nodes.self.push(0);
    tree.nodes.left_out.push(0);
    return tree.nodes.id.length - 1;
  };
  push(null, -1, of, lines.reduce((sum, line) => sum + line.bytes, 0), '');
  for (const line of lines) {
    const node = push(line.class, 0, line.label, line.bytes, line.class, line.bytes_plus_minus);
    // A single part without a name of its own adds nothing.
    const parts = line.parts.filter((part) => part.bytes > 0 && part.name !== '');
    if (parts.length === 1 && parts[0]?.bytes === line.bytes) continue;
    for (const part of parts) push(`${line.class}: ${part.name}`, node, part.name, part.bytes, line.class);
  }
  return tree;
}
