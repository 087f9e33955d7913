// The start of the explorer: navigation, the key, the root, and the page that the address names.

import { get, session } from "./core/api.js";
import { readRoute, link } from "./core/routes.js";
import { visible } from "./core/text.js";
import { Busy, Component, html, Problem, render, Title } from "./core/ui.js";
import { LiveStrip } from "./parts/live.js";

const PAGES = {
  ask: ["Ask", () => import("./pages/ask.js")],
  graph: ["Graph", () => import("./pages/graph.js")],
  communities: ["Communities", () => import("./pages/communities.js")],
  entities: ["Entities", () => import("./pages/entities.js")],
  documents: ["Documents", () => import("./pages/documents.js")],
  snapshots: ["Snapshots", () => import("./pages/snapshots.js")],
  quality: ["Quality and cost", () => import("./pages/quality.js")],
};

const WITHOUT_LINK = {
  relationships: ["Relationship", () => import("./pages/relationships.js")],
};
const UNKNOWN = ["No such page", async () => ({ default: NoSuchPage })];

function NoSuchPage({ at }) {
  return html`<${Title}>No such page</>
    <p role="alert">The explorer has no page <code>${visible(at.page)}</code>. Choose one above.</p>`;
}

class KeyForm extends Component {
  submit = (event) => {
    event.preventDefault();
    session.key = new FormData(event.target).get("key").trim();
    this.props.done();
  };

  render() {
    return html`<form class="key" onSubmit=${this.submit}>
      <label>Key of this server <input name="key" type="password" autocomplete="off" required /></label>
      <button>Use the key</button>
      ${session.key && html`<button type="button" onClick=${() => { session.key = ""; this.props.done(); }}>Forget the key</button>`}
      <p>It stays in this tab until you close it.</p>
    </form>`;
  }
}

function pageOf(name) {
  const pages = { ...PAGES, ...WITHOUT_LINK };
  return Object.hasOwn(pages, name) ? pages[name] : UNKNOWN;
}

class App extends Component {
  state = { at: readRoute(location.hash), page: null, error: null, roots: [], isKeyNeeded: false, snapshot: "" };

  componentDidMount() {
    addEventListener("hashchange", () => this.turn());
    addEventListener("graphrag-key-needed", () => this.setState({ isKeyNeeded: true }));
    addEventListener("graphrag-snapshot", (event) => this.setState({ snapshot: event.detail }));
    this.start();
  }

  start = async () => {
    this.setState({ isKeyNeeded: false, error: null, page: null });
    try {
      const { roots } = await get("/roots", { root: "" }, { isFresh: true });
      if (roots.length && !roots.some((root) => root.name === session.root)) session.root = roots[0].name;
      this.setState({ roots });
      await this.turn();
    } catch (error) {
      this.setState({ error });
    }
  };

  async turn() {
    const at = readRoute(location.hash);
    const [name, load] = pageOf(at.page);
    try {
      const { default: page } = await load();
      const isOther = this.state.at.page !== at.page || this.state.at.key !== at.key;
      document.title = `${name} – GraphRAG explorer`;
      this.setState({ at, page }, () => {
        if (isOther) scrollTo(0, 0);
      });
    } catch (error) {
      this.setState({ error });
    }
  }

  choose = (event) => {
    session.root = event.target.value;
    location.hash = link(this.state.at.page);
    this.start();
  };

  render() {
    const { at, page: Page, error, roots, isKeyNeeded, snapshot } = this.state;
    return html`
      <a class="skip" href="#title" onClick=${(event) => { event.preventDefault(); document.getElementById("title")?.focus(); }}>Skip to the page</a>
      <header>
        <nav aria-label="Pages">${Object.entries(PAGES).map(([key, [name]]) =>
          html`<a href=${link(key)} aria-current=${at.page === key ? "page" : undefined}>${name}</a>`)}</nav>
        ${roots.length > 1 && html`<label class="root">Index <select onChange=${this.choose} value=${session.root}>
          ${roots.map((root) => html`<option value=${root.name}>${root.name}${root.is_ready ? "" : " (not ready)"}</option>`)}</select></label>`}
        ${session.key && !isKeyNeeded && html`<button class="plain" onClick=${() => this.setState({ isKeyNeeded: true })}>Change the key</button>`}
      </header>
      ${!isKeyNeeded && html`<${LiveStrip} key=${session.root} />`}
      <main>
        ${isKeyNeeded ? html`<${KeyForm} done=${this.start} />` : error ? html`<${Problem} error=${error} />`
          : Page ? html`<${Page} key=${`${at.page} ${session.root}`} at=${at} />` : html`<${Busy} />`}
      </main>
      <footer>${snapshot && html`Snapshot <code>${snapshot}</code>`}</footer>`;
  }
}

render(html`<${App} />`, document.getElementById("app"));
