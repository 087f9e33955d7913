// The page Graph: the entities with most relationships, or communities as discs that open; beside the picture the same
// as a list for keyboard and reader.

import { get } from "../core/api.js";
import { go, link } from "../core/routes.js";
import { nameOf, typeWord, visible } from "../core/text.js";
import { Busy, Component, count, createRef, html, NARROW, number, Problem, Title } from "../core/ui.js";
import { GraphModel, keyOf } from "../parts/graph_model.js";
import { GraphPicture, loadDrawing } from "../parts/graph_picture.js";

const MOST_LISTED = 100;
const TOP = [60, 120]; // entities of the first picture, narrow and wide: their names have room
const COMMUNITIES = "communities";
const STEP = 0.1;
const MOVES = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP], "+": [0, 0, 0.8], "-": [0, 0, 1.25] };

export default class GraphPage extends Component {
  state = { isBusy: true, error: null, chosen: null, types: [], total: 0, levels: 1, small: [], found: null, path: null, noPicture: "", announced: "" };
  model = new GraphModel();
  box = createRef();

  async componentDidMount() {
    await this.begin(loadDrawing().catch((error) => error), get("/facets").catch(() => null));
  }

  async begin(drawing, facets) {
    if (!this.props.at.params.entity) await this.load();
    const types = (await facets)?.facets.types ?? []; // else the filter stays empty
    this.model.types = types.map((one) => one.value);
    this.setState({ types });
    try {
      const parts = await drawing;
      if (parts instanceof Error) throw parts;
      if (this.isGone) return;
      this.picture = new GraphPicture(parts, this.box.current, { click: this.press, hover: this.hover, recolored: () => this.forceUpdate() });
      this.draw(true);
    } catch (error) {
      this.setState({ noPicture: `This browser cannot draw the picture (${error.message}). The list shows the same.` });
    }
    await this.follow();
  }

  componentWillUnmount() {
    this.isGone = true;
    this.picture?.close();
  }

  componentDidUpdate(before) {
    const [old, now] = [before.at.params, this.props.at.params];
    if (["view", "type", "level", "entity", "depth", "community"].some((name) => old[name] !== now[name])) this.follow();
  }

  /** Return how much wider than high the picture is. */
  wideness() {
    const { clientWidth, clientHeight } = this.box.current ?? {};
    return clientHeight ? Math.min(Math.max(clientWidth / clientHeight, 0.75), 1.5) : 1;
  }

  isTop() { return !this.props.at.params.view && !this.props.at.params.community; }

  overview() { return JSON.stringify([this.isTop(), this.props.at.params.type, this.props.at.params.level]); }

  showAll = () => this.load(true).then(() => this.draw(true));

  wanted() { return { type: this.props.at.params.type, limit: 2000 }; }

  async attempt(work) {
    this.setState({ isBusy: true, error: null });
    try { return await work(); } catch (error) { this.setState({ error }); return null; } finally { this.setState({ isBusy: false }); }
  }

  /** Load the entities with most relationships, or the communities of a level, the small ones too if `isWhole`. */
  load(isWhole = false) {
    this.loaded = this.overview();
    return this.attempt(async () => {
      if (this.isTop()) {
        const part = (await get("/graph", { ...this.wanted(), top: TOP[NARROW.matches ? 0 : 1] })).graph;
        const wideness = this.wideness();
        this.model.clear();
        this.model.add({ ...part, nodes: part.nodes.map((node) => ({ ...node, x: node.x * wideness })) });
        const [n, all] = [part.nodes.length, count(part.n_nodes, "entity", "entities")];
        const announced = n < part.n_nodes ? `${number(n)} of ${all}, those with most relationships` : all;
        return this.setState({ small: [], total: 0, levels: part.n_levels, chosen: null, path: null, announced });
      }
      const part = (await get("/graph", { ...this.wanted(), level: this.props.at.params.level ?? 0 })).graph;
      this.model.clear();
      const small = this.model.addLevel(part, isWhole);
      const all = count(part.nodes.length, "community", "communities");
      const announced = small.length ? `${number(part.nodes.length - small.length)} of ${all} drawn, without the small ones` : all;
      this.setState({ small, total: part.n_nodes, levels: part.n_levels, chosen: null, path: null, announced });
    });
  }

  /** Show what the address names: an open community, or the surroundings of an entity. */
  async follow() {
    const { entity, community } = this.props.at.params;
    if (entity) return this.surround(entity);
    if (this.loaded !== this.overview()) await this.load().then(() => this.draw(true));
    if (community) await this.openPath(community);
  }

  draw(isWhole = false) {
    if (isWhole && this.picture) this.picture.box = null;
    this.picture?.show(this.model, { chosen: this.state.chosen, path: this.state.path });
    this.forceUpdate(); // the legend names the groups that are shown
    if (this.picture) this.box.current.dataset.drawn = this.model.nodes.size;
    if (isWhole) this.picture?.lookAtAll();
  }

  choose(key) { this.setState({ chosen: key, path: null }, () => this.draw()); }

  hover = (key) => { if (this.box.current) this.box.current.classList.toggle("over", Boolean(key)); };

  press = (key) => {
    const node = this.model.nodes.get(key);
    if (!node) return;
    if (node.kind === "community" && this.state.chosen === key) this.toggle(node);
    else this.choose(key);
  };

  toggle = (node) => (this.model.open.has(keyOf(node)) ? this.closeOne(node) : this.openOne(node.number));

  closeOne(node) {
    this.model.close(node.number);
    this.setState({ announced: `${node.title} is closed` });
    this.choose(keyOf(node));
  }

  openOne(community) {
    return this.attempt(async () => {
      const part = (await get("/graph", { ...this.wanted(), community })).graph;
      this.model.addInside(Number(community), part);
      this.setState({ chosen: null, path: null, announced: `${part.nodes.length} parts of the community` }, () => this.draw());
      this.picture?.lookAt([`community-${community}`]);
    });
  }

  /** Open a community and those around it, the coarsest first. */
  async openPath(community) {
    const path = await this.attempt(async () => {
      const found = [];
      for (let next = community; next !== null && next !== undefined;) {
        const { community: page } = await get(`/communities/${encodeURIComponent(next)}`, { limit: 1 });
        found.unshift(page.number);
        next = page.parent?.number;
      }
      return found;
    });
    if (path && !this.model.nodes.has(`community-${path[0]}`)) await this.showAll();
    for (const one of path ?? []) await this.openOne(one);
  }

  /** Show an entity and those around it alone. */
  surround = (entity) => this.attempt(async () => {
    const { depth, type } = this.props.at.params;
    const part = (await get("/graph", { entity, depth, type, limit: 200 })).graph;
    const [key] = this.alone(() => this.model.addAround(part));
    this.setState({ chosen: key, path: null, found: null, levels: part.n_levels, announced: `${count(part.nodes.length - 1, "entity", "entities")} around ${nameOf(part.nodes[0])}` }, () => this.draw(true));
  });

  alone(add) {
    this.loaded = "";
    this.model.clear();
    this.setState({ small: [], total: 0 });
    return add();
  }

  joinTo = async (event) => {
    event.preventDefault();
    const [node, to] = [this.model.nodes.get(this.state.chosen), new FormData(event.target).get("to").trim()];
    if (!to) return;
    await this.attempt(async () => {
      const part = (await get("/graph", { entity: node.number, to })).graph;
      const path = part.nodes.length ? this.alone(() => this.model.addPath(part)) : null;
      const names = part.nodes.map(nameOf).join(" – ");
      this.setState({ path, announced: path ? `Path: ${names}` : `No path of at most six relationships leads from ${nameOf(node)} to ${visible(to)}.` }, () => this.draw(Boolean(path)));
    });
  };

  /** Draw the view again whose address a path has kept. */
  leavePath = () => { if (this.state.path) this.load().then(() => this.draw(true)); };

  search = async (event) => {
    event.preventDefault();
    const search = new FormData(event.target).get("search").trim();
    if (!search) return;
    const [entities, reports] = (await this.attempt(() => Promise.all([get("/entities", { search, limit: 8 }), get("/reports", { search, limit: 4 })]))) ?? [];
    if (entities) this.setState({ found: { entities: entities.entities, reports: reports.reports } });
  };

  narrow = (event) => {
    const values = Object.fromEntries(new FormData(event.target.form));
    const { view, entity, community } = this.props.at.params;
    go("graph", "", { view, entity, community, type: values.type, level: values.level === "0" ? "" : values.level });
  };

  keys = (event) => {
    const move = MOVES[event.key];
    if (event.key === "0") this.picture?.lookAtAll();
    else if (move) this.picture?.move(...move);
    else return;
    event.preventDefault();
  };

  render() {
    const { isBusy, error, chosen, types, total, levels, small, found, noPicture, announced } = this.state;
    const { params } = this.props.at;
    const listed = this.model.listed();
    const node = chosen ? this.model.nodes.get(chosen) : null;
    const view = this.isTop() ? "" : COMMUNITIES;
    return html`<${Title}>Graph</>
      <nav class="tabs" aria-label="Views">${[["", "Entities"], [COMMUNITIES, "Communities"]].map(([key, name]) =>
        html`<a href=${link("graph", "", { view: key, type: params.type })} aria-current=${key === view ? "page" : null} onClick=${this.leavePath}>${name}</a>`)}</nav>
      <div class="tools">
        <form class="search" role="search" onSubmit=${this.search}><label>Find <input name="search" type="search" /></label><button>Find</button></form>
        <details class="filters" open=${!NARROW.matches}><summary>Filters</summary><form class="search"><label>Type <select name="type" onChange=${this.narrow}><option value="">all types</option>${types.map((one) =>
          html`<option value=${one.value} selected=${one.value === params.type}>${typeWord(one.value)} (${number(one.count)})</option>`)}</select></label>
          ${view === COMMUNITIES && html`<label>Level <select name="level" onChange=${this.narrow}>${Array.from({ length: levels }, (_, level) => html`<option value=${level} selected=${String(level) === (params.level ?? "0")}>${level}</option>`)}</select></label>`}</form></details>
      </div>
      ${found && html`<${Found} found=${found} close=${() => this.setState({ found: null })} />`}
      ${error && html`<${Problem} error=${error} />`}
      <div class="graph">
        <div class="picture">
          ${noPicture ? html`<p class="none">${noPicture}</p>` : html`<div ref=${this.box} class="canvas" tabindex="0" role="application" onKeyDown=${this.keys}
            aria-label="Picture of the graph. Arrows move it, plus and minus zoom, 0 shows all. The list beside it opens communities."></div>`}
          <div class="under">${this.picture?.hues && html`<${Legend} types=${[...this.picture.hues].filter(([group]) => typeof group === "string")} color=${(hue) => this.picture.colorOf(hue)} />`}
          <div class="zoom"><button aria-label="Zoom in" onClick=${() => this.picture?.move(0, 0, 0.7)}>+</button><button aria-label="Zoom out" onClick=${() => this.picture?.move(0, 0, 1.4)}>−</button><button aria-label="Show all" onClick=${() => this.picture?.lookAtAll()}>All</button></div></div>
        </div>
        <section class="beside-graph" aria-label="Shown in the picture">
          <p role="status" class="count">${isBusy ? "Loading …" : announced}</p>
          ${node && html`<${Chosen} node=${node} isOpen=${this.model.open.has(chosen)} isCentre=${params.entity === String(node.number) && !params.depth} toggle=${() => this.toggle(node)} joinTo=${this.joinTo} near=${[...this.model.near(chosen)].map((key) => this.model.nodes.get(key)).filter(Boolean)} choose=${(one) => this.choose(keyOf(one))} />`}
          ${[...this.model.open].map((key) => this.model.nodes.get(key)).filter(Boolean).map((one) => html`<p class="opened">Open: <a href=${link("communities", one.number)}>${visible(one.title)}</a> <button onClick=${() => this.closeOne(one)}>Close</button></p>`)}
          <h2>Shown</h2>
          ${total > 2000 && html`<p class="count">The 2,000 largest of ${number(total)} communities of this level.</p>`}
          ${isBusy && !listed.length ? html`<${Busy} />` : html`<ul class="shown listing">${listed.slice(0, MOST_LISTED).map((one) => html`<li key=${keyOf(one)}>
            <button class="plain" title=${titleOf(one)} aria-pressed=${keyOf(one) === chosen} onClick=${() => this.choose(keyOf(one))}>${this.picture?.hues && html`<span class="swatch" style=${{ background: this.picture.colorOfNode(one) }}></span>`}${nameOf(one)}</button>${" "}<span class="count">${one.kind === "community" ? count(one.size, "entity", "entities") : typeWord(one.type)}</span></li>`)}
            ${small.length > 0 && !this.model.open.size && html`<li><button onClick=${this.showAll}>${number(small.length)} small ones</button></li>`}</ul>`}
          ${listed.length > MOST_LISTED && html`<p class="count">and ${number(listed.length - MOST_LISTED)} smaller ones in the picture</p>`}
        </section>
      </div>`;
  }
}

const titleOf = (node) => (node.kind === "community" ? visible(node.title) : nameOf(node));

function Legend({ types, color }) {
  return types.length > 0 && html`<ul class="legend" aria-label="Colors: types of entities">${types.map(([type, hue]) => html`<li><span class="swatch" style=${{ background: color(hue) }}></span>${typeWord(type) || "no type"}</li>`)}</ul>`;
}

function Chosen({ node, isOpen, isCentre, toggle, joinTo, near, choose }) {
  const isCommunity = node.kind === "community";
  return html`<div class="chosen"><h2>${titleOf(node)}</h2>
    <p>${isCommunity ? `Community of level ${node.level}, ${count(node.size, "entity", "entities")}` : `${typeWord(node.type)}, ${count(node.size, "relationship")}`}</p>
    <p class="buttons">${isCommunity ? html`<button class="main" onClick=${toggle}>${isOpen ? "Close" : "Open"} the community</button> <a href=${link("communities", node.number)}>Report</a>`
      : html`${!isCentre && html`<a class="button main" href=${link("graph", "", { entity: node.number })}>Show its surroundings</a> `}<a class="button" href=${link("graph", "", { entity: node.number, depth: 2 })}>Two steps</a> <a href=${link("entities", node.number)}>Page of the entity</a>`}</p>
    ${!isCommunity && html`<form class="search" onSubmit=${joinTo}><label>Path to another entity <input name="to" placeholder="Its name" /></label><button>Find a path</button></form>`}
    ${near.length > 0 && html`<details><summary>Related in the picture (${near.length})</summary><ul class="shown">${near.slice(0, 50).map((one) => html`<li><button class="plain" onClick=${() => choose(one)}>${titleOf(one)}</button></li>`)}</ul></details>`}
  </div>`;
}

function Found({ found, close }) {
  const none = !found.entities.length && !found.reports.length;
  return html`<section class="found" aria-label="Found"><button onClick=${close}>Close</button>
    ${none && html`<p class="none">Nothing has this in its name.</p>`}
    <ul>${found.entities.map((one) => html`<li><a href=${link("graph", "", { entity: one.number })}>${nameOf(one)}</a> <span class="count">${typeWord(one.type)}</span></li>`)}
      ${found.reports.map((one) => html`<li><a href=${link("graph", "", { community: one.community })}>${visible(one.title)}</a> <span class="count">community</span></li>`)}</ul></section>`;
}
