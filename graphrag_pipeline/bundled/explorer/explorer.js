// The start of the explorer: navigation, the key, the root, and the page that the address names.

import { get, session } from "./core/api.js";
import { readRoute, link } from "./core/routes.js";
import { age, visible } from "./core/text.js";
import { Busy, Component, html, Icon, Problem, render, Title } from "./core/ui.js";
import { LiveStrip } from "./parts/live.js";

const PAGES = {
  ask: ["Ask", () => import("./pages/ask.js"), "M4 5h16v11H10l-5 4v-4H4z"],
  graph: ["Graph", () => import("./pages/graph.js"), "M7 8l9-2M7 9l5 8M17 7l-4 10M3 8a2.5 2.5 0 1 0 5 0 2.5 2.5 0 1 0-5 0M16 6a2 2 0 1 0 4 0 2 2 0 1 0-4 0M10 18a2.5 2.5 0 1 0 5 0 2.5 2.5 0 1 0-5 0"],
  communities: ["Communities", () => import("./pages/communities.js"), "M3 8a5 5 0 1 0 10 0 5 5 0 1 0-10 0M13 16a4 4 0 1 0 8 0 4 4 0 1 0-8 0M4 18a2 2 0 1 0 4 0 2 2 0 1 0-4 0"],
  entities: ["Entities", () => import("./pages/entities.js"), "M4 4h7l9 9-7 7-9-9zM8 8h.01"],
  documents: ["Documents", () => import("./pages/documents.js"), "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6"],
  snapshots: ["Snapshots", () => import("./pages/snapshots.js"), "M12 4a8 8 0 1 0 8 8M12 8v4l3 2M15 4h5v5"],
  quality: ["Quality and cost", () => import("./pages/quality.js"), "M4 20h16M7 20v-7M12 20V5M17 20v-10"],
};

const WITHOUT_LINK = {
  relationships: ["Relationship", () => import("./pages/relationships.js")],
  review: ["Review", () => import("./pages/review.js")],
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
      <h1 id="title" tabindex="-1">This server needs a key</h1>
      <label>Key of this server <input name="key" type="password" autocomplete="off" required /></label>
      <button class="main">Use the key</button>
      ${session.key && html`<button type="button" onClick=${() => { session.key = ""; this.props.done(); }}>Forget the key</button>`}
      <p>It stays in this tab until you close it.</p>
    </form>`;
  }
}

function pageOf(name) {
  const pages = { ...PAGES, ...WITHOUT_LINK };
  return Object.hasOwn(pages, name) ? pages[name] : UNKNOWN;
}

const [THEME, IS_DARK] = ["graphrag-theme", "(prefers-color-scheme: dark)"];
const DARK = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).find((rule) => rule.media?.mediaText === IS_DARK);

/** Use the dark colors always, never, or as the system says. */
function useTheme(theme) {
  sessionStorage.setItem(THEME, theme);
  DARK.media.mediaText = { light: "not all", dark: "all" }[theme] ?? IS_DARK;
  document.documentElement.style.colorScheme = theme === "system" ? "" : theme;
  dispatchEvent(new Event("graphrag-theme"));
}

/** The published snapshot and its age. */
class Snapshot extends Component {
  state = { created: "" };

  async componentDidMount() {
    this.timer = setInterval(() => this.forceUpdate(), 60_000);
    const found = await get(`/snapshots/${this.props.id}`).catch(() => null);
    this.setState({ created: found?.facts.created ?? "" });
  }

  componentWillUnmount() { clearInterval(this.timer); }

  render({ id }, { created }) {
    return html`<p class="snapshot">Snapshot <code title=${id}>${id.slice(0, 8)}</code>
      ${created && html` <time datetime=${created} title=${created}>${age(created)}</time>`}</p>`;
  }
}

class App extends Component {
  state = { at: readRoute(location.hash), page: null, error: null, roots: [], isKeyNeeded: false, isOpen: false, snapshot: "" };

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
      const wanted = readRoute(location.hash).params.index ?? session.root; // a link that was sent names its index
      const found = roots.find((root) => root.name === wanted) ?? roots[0];
      if (found && found.name !== session.root) session.root = found.name;
      this.setState({ roots, snapshot: found?.snapshot ?? "" });
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
      document.title = `${name} – ${session.root || "index"} – GraphRAG pipeline`;
      this.setState({ at, page, isOpen: false }, () => {
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
    const { at, page: Page, error, roots, isKeyNeeded, isOpen, snapshot } = this.state;
    return html`
      <a class="skip" href="#title" onClick=${(event) => { event.preventDefault(); document.getElementById("title")?.focus(); }}>Skip to the page</a>
      <header>
        <div class="brand"><img src="/static/icon.svg" alt="" /><p><a href=${link("ask")}>GraphRAG pipeline</a>
          ${roots.length > 1 ? html`<select aria-label="Index" onChange=${this.choose} value=${session.root}>
            ${roots.map((root) => html`<option value=${root.name}>${root.name}${root.is_ready ? "" : " (not ready)"}</option>`)}</select>`
            : html`<strong class="index">${visible(session.root)}</strong>`}</p></div>
        <button class="menu" aria-expanded=${isOpen} aria-controls="pages" onClick=${() => this.setState({ isOpen: !isOpen })}><${Icon} path=${isOpen ? "M6 6l12 12M18 6L6 18" : "M4 7h16M4 12h16M4 17h16"} /> Menu</button>
        <nav id="pages" class=${isOpen ? "open" : ""} aria-label="Pages">${Object.entries(PAGES).map(([key, [name, , path]]) =>
          html`<a href=${link(key)} aria-current=${at.page === key ? "page" : undefined} onClick=${() => this.setState({ isOpen: false })}><${Icon} path=${path} />${name}</a>`)}</nav>
        <div class="status">
          ${!isKeyNeeded && html`<${LiveStrip} key=${session.root} />`}
          <select class="theme" aria-label="Theme" onChange=${(event) => useTheme(event.target.value)}>${["system", "light", "dark"].map((one) => html`<option value=${one} selected=${one === (sessionStorage.getItem(THEME) ?? "system")}>${`Theme: ${one}`}</option>`)}</select>
          ${snapshot && !isKeyNeeded && html`<${Snapshot} id=${snapshot} key=${snapshot} />`}
          ${session.key && !isKeyNeeded && html`<button class="plain" onClick=${() => this.setState({ isKeyNeeded: true })}>Change the key</button>`}
        </div>
      </header>
      <main>
        ${isKeyNeeded ? html`<${KeyForm} done=${this.start} />` : error ? html`<${Problem} error=${error} />`
          : Page ? html`<${Page} key=${`${at.page} ${session.root}`} at=${at} />` : html`<${Busy} />`}
      </main>`;
  }
}

useTheme(sessionStorage.getItem(THEME) ?? "system");
render(html`<${App} />`, document.getElementById("app"));
