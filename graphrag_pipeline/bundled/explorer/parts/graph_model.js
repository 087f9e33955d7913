// What the graph page shows: nodes and edges from the server, which communities are open, and what is selected.
// Keep out: drawing (`graph_picture.js`) and requests (`pages/graph.js`).

const SMALL = 0.1; // of the entities of the largest community
const MOST_SMALL = 3; // so many are shown, too
const [HEIGHT, WIDTH, RING] = [12, 6.5, 40]; // of the ring around an entity in units of the layout; nodes on each ring
const HUES = [225, 25, 155, 285, 45, 340, 190, 95, 260, 5]; // neighbours in the list differ most

export const groupOf = (node) => (node.kind === "community" ? node.number : node.type);
export const keyOf = (node) => `${node.kind}-${node.number}`;

export class GraphModel {
  nodes = new Map();
  edges = new Map();
  open = new Set();
  isRing = false; // around an entity
  types = []; // of all entities, most frequent first: a type has one color in every picture

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

  /** Take the communities of a level, largest first; return those left out because they are small. */
  addLevel(part, isWhole) {
    const n = part.nodes.filter((node) => node.size > SMALL * part.nodes[0].size).length;
    if (isWhole || part.nodes.length - n <= MOST_SMALL) this.add(part);
    else this.add({ nodes: part.nodes.slice(0, n), edges: part.edges.filter(({ source, target }) => source < n && target < n) });
    return part.nodes.slice(this.nodes.size);
  }

  /** Take an entity and those around it, strongest first: on rings, those of a type together, with room for names. */
  addAround({ nodes: [centre, ...others], edges }) {
    const order = others.map((node, i) => [node, Math.floor(i / RING)]).sort(([a, i], [b, j]) => i - j || a.type.localeCompare(b.type) || b.size - a.size);
    order.forEach(([node, ring], i) => {
      const [place, n] = [i - ring * RING, Math.min(RING, others.length - ring * RING)];
      const half = Math.ceil(n / 2);
      const isLeft = place >= half;
      const rest = isLeft ? n - half : half;
      const y = (ring + 1) * (1 - (2 * ((isLeft ? n - 1 - place : place) + 0.5)) / rest);
      const x = Math.sqrt(Math.max(0, (ring + 1) ** 2 - 0.8 * y * y));
      Object.assign(node, { x: (isLeft ? -1 : 1) * WIDTH * x, y: HEIGHT * y });
    });
    this.isRing = true;
    return this.add({ nodes: [{ ...centre, x: 0, y: 0 }, ...others], edges });
  }

  /** Take the entities of a path, from above to below. */
  addPath({ nodes, edges }) {
    return this.add({ nodes: nodes.map((node, i) => ({ ...node, x: i % 2, y: -3 * i })), edges });
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
    this.isRing = false;
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

  /** Return the nodes inside the community that was opened last, or all, without frames of open ones; largest first. */
  listed() {
    const inside = this.nodes.get([...this.open].pop());
    return [...this.nodes.values()].filter((node) => !this.open.has(keyOf(node)) && (!inside || node.parent === inside.number)).sort((a, b) => b.size - a.size);
  }

  /** Return the hue of each frequent type of entities and of each large community. */
  hues() {
    const sizes = { entity: new Map(), community: new Map() };
    for (const node of this.nodes.values()) {
      const [by, group] = [sizes[node.kind], groupOf(node)];
      by.set(group, (by.get(group) ?? 0) + (node.kind === "community" ? node.size : 1));
    }
    const largest = (by) => [...by].sort(([, a], [, b]) => b - a).slice(0, HUES.length).map(([group], i) => [group, HUES[i]]);
    const byType = this.types.slice(0, HUES.length).map((type, i) => [type, HUES[i]]).filter(([type]) => sizes.entity.has(type));
    return new Map([...(this.types.length ? byType : largest(sizes.entity)), ...largest(sizes.community)]);
  }
}
