// What the graph page shows: nodes and edges from the server, which communities are open, and what is selected.
// Keep out: drawing (`graph_picture.js`) and requests (`pages/graph.js`).

const HUES = [225, 25, 155, 285, 45, 340, 190, 95, 260, 5]; // neighbours in the list differ most

export const keyOf = (node) => `${node.kind}-${node.number}`;

export class GraphModel {
  nodes = new Map();
  edges = new Map();
  open = new Set();

  /** Take a part of the graph as the server answers it; return the keys of its nodes. */
  add(part) {
    const keys = part.nodes.map((node) => {
      const key = keyOf(node);
      const known = this.nodes.get(key);
      this.nodes.set(key, known ? { ...node, parent: known.parent >= 0 ? known.parent : node.parent } : node);
      return key;
    });
    for (const { source, target, weight } of part.edges) {
      const [a, b] = [keys[source], keys[target]].sort();
      this.edges.set(`${a} ${b}`, { a, b, weight });
    }
    return keys;
  }

  addInside(number, part) {
    this.open.add(`community-${number}`);
    return this.add(part);
  }

  /** Close a community: what is inside it is no longer shown. */
  close(number) {
    this.open.delete(`community-${number}`);
    for (const [key, node] of this.nodes) {
      if (node.parent !== number) continue;
      this.nodes.delete(key);
      if (node.kind === "community") this.close(node.number);
    }
    for (const [key, edge] of this.edges) {
      if (!this.nodes.has(edge.a) || !this.nodes.has(edge.b)) this.edges.delete(key);
    }
  }

  clear() {
    this.nodes.clear();
    this.edges.clear();
    this.open.clear();
  }

  /** Return the keys of the nodes that an edge joins to a node. */
  near(key) {
    const found = new Set();
    for (const { a, b } of this.edges.values()) {
      if (a === key) found.add(b);
      if (b === key) found.add(a);
    }
    return found;
  }

  /** Return the nodes that are not the frame of an open community, largest first. */
  listed() {
    return [...this.nodes.values()].filter((node) => !this.open.has(keyOf(node))).sort((a, b) => b.size - a.size);
  }

  /** Return [name, hue, test of a node] triples: the largest groups have a color of their own, the rest has none. */
  groups(isByType) {
    const sizes = new Map();
    for (const node of this.nodes.values()) {
      if (isByType && node.type) sizes.set(node.type, (sizes.get(node.type) ?? 0) + 1);
      if (!isByType && node.kind === "community") sizes.set(node.number, node.size);
    }
    const largest = [...sizes].sort(([, a], [, b]) => b - a).slice(0, HUES.length).map(([group]) => group);
    return largest.map((group, i) => ({ group, hue: HUES[i], name: isByType ? group : this.nodes.get(`community-${group}`).title }));
  }

  /** Return the group that a node belongs to: its type, itself if it is a community, or the community around it. */
  groupOf(node, isByType) {
    if (isByType) return node.type;
    return node.kind === "community" ? node.number : node.parent;
  }
}
