// The picture of the graph: sigma (WebGL) over graphology, both loaded when the first picture is drawn.
// Sizes are in units of the layout, so an open community is the disc around its parts. Keep out: what is shown.

import { nameOf, typeWord } from "../core/text.js";
import { fit, wrap } from "./graph_labels.js";
import { groupOf, keyOf } from "./graph_model.js";

const LEAST_RADIUS = 0.25;
const MORE_RADIUS = 0.3; // of the entity with most relationships
const LABEL_SIZE = 13;
const GOLDEN_ANGLE = 137.5; // of hues: numbers that follow each other are far apart
const PALE = 0.25;
const LEAST_ROOM = 44; // pixels
const MOST_ROOM = 260;
const MOST_MOVED = 1000; // edges that are drawn while the picture moves
const MOST_NAMED = 250; // nodes that all have names, where these do not cover each other

export async function loadDrawing() {
  await Promise.all([import("../vendor/graphology.umd.min.js"), import("../vendor/sigma.min.js")]);
  return { Graph: globalThis.graphology.Graph, Sigma: globalThis.Sigma };
}

export class GraphPicture {
  constructor({ Graph, Sigma }, container, { click, hover, recolored }) {
    Object.assign(this, { Graph, recolored });
    this.graph = this.emptyGraph();
    this.colors = readColors();
    this.sigma = new Sigma(this.graph, container, {
      itemSizesReference: "positions", zoomToSizeRatioFunction: (ratio) => ratio, zIndex: true, allowInvalidContainer: true,
      labelFont: "Inter, system-ui, sans-serif", labelColor: { color: this.colors.text }, labelGridCellSize: 110,
      nodeReducer: (key, data) => (this.lit && !this.lit.has(key) ? { ...data, color: this.colors.faded, label: null, forceLabel: false } : data),
      edgeReducer: (_, data) => this.edgeLook(data),
      labelRenderedSizeThreshold: 4, labelSize: LABEL_SIZE, minEdgeThickness: 0.9, minCameraRatio: 0.0005, maxCameraRatio: 3,
      defaultDrawNodeLabel: (context, data, settings) => this.drawLabel(context, data, settings),
      defaultDrawNodeHover: (context, data, settings) => this.drawHover(context, data, settings),
    });
    this.sigma.createCanvasContext("frames", { beforeLayer: "edges" });
    this.sigma.on("beforeRender", () => { this.named = []; });
    this.sigma.on("afterRender", () => this.drawFrames());
    this.sigma.on("clickNode", ({ node }) => click(node));
    this.sigma.on("enterNode", ({ node }) => { hover(node); this.light(this.model.near(node).add(node), node); });
    this.sigma.on("leaveNode", () => { hover(null); this.light(this.kept, this.shown.path ? null : this.shown.chosen); });
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.recolor);
    addEventListener("graphrag-theme", this.recolor);
  }

  emptyGraph() { return new this.Graph({ type: "undirected", multi: false }); }

  recolor = () => {
    this.colors = readColors();
    this.sigma.setSetting("labelColor", { color: this.colors.text });
    if (this.model) this.show(this.model, this.shown);
    this.recolored();
  };

  close() {
    this.scheme.removeEventListener("change", this.recolor);
    removeEventListener("graphrag-theme", this.recolor);
    this.sigma.kill();
  }

  /** Let some nodes and what joins them to `centre`, or each other, stand out; null: all. */
  light(keys, centre) {
    Object.assign(this, { lit: keys, centre });
    this.sigma.refresh({ skipIndexation: true });
  }

  edgeLook(data) {
    if (!this.lit) return data;
    if (!this.lit.has(data.a) || !this.lit.has(data.b)) return { ...data, color: this.colors.faint };
    if (this.centre && this.centre !== data.a && this.centre !== data.b) return data;
    return { ...data, size: Math.max(data.size, 0.1 * this.scale), color: this.colors.strong, zIndex: 1 };
  }

  /** Draw a model; the surroundings of the node `chosen`, or the nodes of `path`, stand out. */
  show(model, shown) {
    const { chosen, path } = shown;
    Object.assign(this, { model, shown });
    this.kept = this.lit = path ? new Set(path) : chosen ? model.near(chosen).add(chosen) : null;
    this.centre = path ? null : chosen;
    this.isFlat = ![...model.nodes.keys()].some((key) => key.startsWith("community"));
    this.scale = this.isFlat ? Math.max(1, model.nodes.size / 70) : 1; // what is wider is seen from further away
    this.hues = model.hues();
    const discs = [...model.nodes.values()].filter((node) => node.kind === "community" && !model.open.has(keyOf(node)));
    this.unit = Math.min(...discs.map((node) => node.radius / Math.sqrt(node.size))); // areas of discs follow their sizes
    this.most = Math.max(1, ...[...model.nodes.values()].filter((node) => node.kind === "entity").map((node) => node.size));
    this.graph = this.emptyGraph(); // filled before sigma sees it, which would look at each change
    for (const [key, node] of model.nodes) {
      if (!model.open.has(key)) this.graph.addNode(key, this.nodeLook(node, this.colorOfNode(node), model.nodes.size <= MOST_NAMED || key === chosen));
    }
    const strongest = Math.max(...[...model.edges.values()].map((edge) => edge.weight), 1);
    for (const { a, b, weight } of model.edges.values()) {
      if (!this.graph.hasNode(a) || !this.graph.hasNode(b)) continue;
      this.graph.addEdge(a, b, { a, b, size: this.edgeSize(model, a, b, weight / strongest), color: this.colors.edge, zIndex: 0 });
    }
    this.sigma.setSetting("labelDensity", model.nodes.size > MOST_NAMED ? 0.8 : 0); // else names come in the order of nodes
    this.sigma.setSetting("hideEdgesOnMove", this.graph.size > MOST_MOVED);
    this.sigma.setGraph(this.graph);
    this.frame(model);
  }

  /** Return the color of a node's group; small communities differ from their neighbours, but are paler. */
  colorOfNode(node) {
    const [group, isSoft] = [groupOf(node), node.kind === "community"];
    if (this.hues.has(group) || !isSoft) return this.colorOf(this.hues.get(group), isSoft);
    return this.colorOf((group * GOLDEN_ANGLE) % 360, isSoft, PALE);
  }

  nodeLook(node, color, forceLabel) {
    const isCommunity = node.kind === "community";
    return {
      x: node.x, y: node.y, color, size: this.radiusOf(node), zIndex: isCommunity ? node.level : 1000,
      label: nameOf(node), about: about(node), forceLabel: Boolean(forceLabel),
    };
  }

  /** Return the color of a group: soft below the names in discs of communities, strong for entities. */
  colorOf(hue, isSoft, saturation = 0.6) {
    const lightness = (isSoft ? this.colors.soft : this.colors.lightness) / 100;
    return hexOf(hue ?? 230, hue === undefined ? 0.08 : saturation, lightness);
  }

  radiusOf(node) { return node.kind === "community" ? this.unit * Math.sqrt(node.size) : this.scale * (LEAST_RADIUS + MORE_RADIUS * Math.sqrt(node.size / this.most)); }

  edgeSize(model, a, b, share) {
    if (this.isFlat) return this.scale * (0.07 + 0.12 * Math.sqrt(share));
    const radius = Math.min(...[a, b].map((key) => this.radiusOf(model.nodes.get(key))));
    // Beside an open community the edges of others are hairlines, which do not cover what is in it.
    const isOutside = model.open.size > 0 && ![a, b].some((key) => model.open.has(`community-${model.nodes.get(key).parent}`));
    return radius * (0.03 + 0.14 * Math.sqrt(share)) * (isOutside ? 0.02 : 1);
  }

  /** Draw the discs of open communities below everything else, the outer ones first. */
  drawFrames() {
    const canvas = this.sigma.getCanvases().frames;
    const context = canvas.getContext("2d");
    const { width, height } = this.sigma.getDimensions();
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio)) Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const frames = [...(this.model?.open ?? [])].map((key) => this.model.nodes.get(key)).filter(Boolean).sort((a, b) => a.level - b.level);
    for (const { x, y, radius } of frames) {
      const [centre, edge] = [this.sigma.graphToViewport({ x, y }), this.sigma.graphToViewport({ x: x + radius, y })];
      context.beginPath();
      context.arc(centre.x, centre.y, Math.hypot(edge.x - centre.x, edge.y - centre.y), 0, 2 * Math.PI);
      context.fillStyle = this.colors.open;
      context.strokeStyle = this.colors.edge;
      context.fill();
      context.stroke();
    }
  }

  /** Keep the frame of the picture while communities open and close. */
  frame(model) {
    if (this.box || !model.nodes.size) return;
    const nodes = [...model.nodes.values()];
    this.box = {
      x: [Math.min(...nodes.map((one) => one.x - one.radius)), Math.max(...nodes.map((one) => one.x + one.radius))],
      y: [Math.min(...nodes.map((one) => one.y - one.radius)), Math.max(...nodes.map((one) => one.y + one.radius))],
    };
    this.sigma.setCustomBBox(this.box);
    this.sigma.refresh();
  }

  /** Move the camera so that some nodes fill the picture. */
  lookAt(keys) {
    const nodes = keys.map((key) => this.model.nodes.get(key)).filter(Boolean);
    if (!nodes.length || !this.box) return;
    const [width, height] = ["x", "y"].map((axis) => this.box[axis][1] - this.box[axis][0]);
    const spread = (axis) => [Math.min(...nodes.map((one) => one[axis] - one.radius)), Math.max(...nodes.map((one) => one[axis] + one.radius))];
    const [[left, right], [bottom, top]] = [spread("x"), spread("y")];
    const whole = Math.max(width, height) || 1;
    const { width: across, height: down } = this.sigma.getDimensions();
    const least = Math.min(across, down);
    // Sigma enlarges a picture that is as wide, or as high, as its box.
    const [graph, room] = [height / (width || 1), down / across];
    const enlarged = graph < 1 === room < 1 ? Math.min(Math.max(graph, 1 / graph), Math.max(room, 1 / room)) : 1;
    const ratio = Math.max(((this.isFlat ? 1.1 : 1) * enlarged * Math.max(((right - left) * least) / across, ((top - bottom) * least) / down)) / whole, 0.0008);
    const target = {
      x: 0.5 + ((left + right) / 2 - (this.box.x[0] + this.box.x[1]) / 2) / whole,
      y: 0.5 + ((bottom + top) / 2 - (this.box.y[0] + this.box.y[1]) / 2) / whole, ratio: Math.min(ratio, 1.1), angle: 0,
    };
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isStill) this.sigma.getCamera().setState(target); else this.sigma.getCamera().animate(target, { duration: 400 });
  }

  lookAtAll() { this.lookAt([...this.model.nodes.keys()]); }

  move(dx, dy, zoom = 1) {
    const camera = this.sigma.getCamera();
    const { x, y, ratio } = camera.getState();
    camera.setState({ x: x + dx * ratio, y: y + dy * ratio, ratio: ratio * zoom });
  }

  /** Write the name of a community inside its disc, if it fits, and that of an entity beside it or below. */
  drawLabel(context, data, settings) {
    if (!data.label) return;
    context.font = `${settings.labelSize}px ${settings.labelFont}`;
    const room = 1.7 * data.size;
    if (data.key.startsWith("entity") || room < LEAST_ROOM) {
      const [name, x, y, width] = this.placeName(context, data, settings.labelSize);
      const box = { left: x, right: x + width, top: y - settings.labelSize, bottom: y + 3 };
      const isCovered = this.named.some((one) => one.left < box.right && one.right > box.left && one.top < box.bottom && one.bottom > box.top);
      if (isCovered && data.key !== this.centre) return;
      this.named.push(box);
      Object.assign(context, { fillStyle: this.colors.text, strokeStyle: this.colors.panel, lineWidth: 3, lineJoin: "round" });
      context.strokeText(name, x, y); // a rim keeps the name readable over lines and discs
      context.fillText(name, x, y);
      return;
    }
    const height = settings.labelSize + 2;
    const lines = [...wrap(context, data.label, room, Math.max(1, Math.min(4, Math.floor((1.9 * data.size) / height) - 1))), this.heldBy(data.key)];
    this.named.push({ left: data.x - room / 2, right: data.x + room / 2, top: data.y - (lines.length * height) / 2, bottom: data.y + (lines.length * height) / 2 });
    context.fillStyle = this.colors.inside;
    lines.forEach((line, i) => context.fillText(line, data.x - context.measureText(line).width / 2, data.y + settings.labelSize / 3 + (i - (lines.length - 1) / 2) * height));
  }

  /** Return how many entities a community holds. */
  heldBy(key) { return (this.model.nodes.get(key)?.size ?? 0).toLocaleString("en"); }

  /** Return the name of a node as it fits, and where it begins: beside an entity, on the side of a ring with room; else below. */
  placeName(context, data, labelSize) {
    const [{ width: across }, gap] = [this.sigma.getDimensions(), data.size + 4];
    const isBeside = data.key.startsWith("entity") && data.key !== this.centre;
    const end = data.x + gap + Math.min(MOST_ROOM, context.measureText(data.label).width);
    const isLeft = this.model.isRing ? this.graph.getNodeAttribute(data.key, "x") < 0 : end > across - 4 && data.x > across / 2;
    const outside = (isLeft ? data.x : across - data.x) - gap - 4;
    const inside = isBeside && this.model.isRing ? Math.abs(this.sigma.graphToViewport({ x: 0, y: 0 }).x - data.x) - gap : 0;
    const isOutside = outside >= inside || context.measureText(data.label).width <= outside;
    const held = data.key.startsWith("entity") ? "" : ` · ${this.heldBy(data.key)}`;
    const name = fit(context, data.label, -context.measureText(held).width + Math.min(isBeside ? MOST_ROOM : MOST_ROOM / 2, isBeside ? Math.max(outside, inside) : across)) + held;
    const { width } = context.measureText(name);
    if (isBeside) return [name, isLeft === isOutside ? data.x - gap - width : data.x + gap, data.y + labelSize / 3, width];
    const x = Math.max(4, Math.min(data.x - width / 2, across - 4 - width));
    const [below, above] = [data.y + data.size + labelSize, data.y - data.size - 4];
    return [name, x, this.coversDisc(x, below, width, labelSize) && !this.coversDisc(x, above, width, labelSize) ? above : below, width];
  }

  /** Return whether a name at a place would cover the disc of a community. */
  coversDisc(x, y, width, height) {
    return this.graph.order <= MOST_NAMED && this.graph.someNode((key, { x: ofDisc, y: down, size }) => {
      if (!key.startsWith("community")) return false;
      const [centre, edge] = [this.sigma.graphToViewport({ x: ofDisc, y: down }), this.sigma.graphToViewport({ x: ofDisc + size, y: down })];
      const beside = Math.max(x - centre.x, 0, centre.x - x - width);
      return Math.hypot(beside, Math.max(y - height - centre.y, 0, centre.y - y)) < edge.x - centre.x - 1;
    });
  }

  drawHover(context, data, settings) {
    if (!data.label && !data.about) return;
    const size = settings.labelSize;
    const lines = [data.label, this.graph.getNodeAttribute(data.key, "about")].filter(Boolean);
    context.font = `${size}px ${settings.labelFont}`;
    const width = Math.max(...lines.map((line) => context.measureText(line).width)) + 12;
    context.fillStyle = this.colors.panel;
    context.strokeStyle = this.colors.edge;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(data.x + 8, data.y - size - 4, width, lines.length * (size + 4) + 6, 6);
    context.fill();
    context.stroke();
    context.fillStyle = this.colors.text;
    lines.forEach((line, i) => context.fillText(line, data.x + 14, data.y + 1 + i * (size + 4)));
  }
}

/** Return a color as sigma reads it; hue in degrees, the others from 0 to 1. */
function hexOf(hue, saturation, lightness) {
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    const value = lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(255 * value).toString(16).padStart(2, "0");
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}

function about(node) {
  return node.kind === "community" ? `community of ${node.size.toLocaleString("en")} entities` : `${typeWord(node.type)}, ${node.size} relationships`;
}

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--graph-${name}`).trim();
  return Object.fromEntries(["text", "panel", "edge", "strong", "faint", "open", "faded", "lightness", "soft", "inside"].map((name) => [name, color(name)]));
}
