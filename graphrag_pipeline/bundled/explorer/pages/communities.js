// The page Communities: the hierarchy as a tree and as a treemap, the list of reports, and one report in full.

import { get } from "../core/api.js";
import { go, link } from "../core/routes.js";
import { excerpt, nameOf, readCited, typeWord, visible } from "../core/text.js";
import { Component, count, Figures, html, Loaded, NARROW, number, Pager, Problem, Table, Title } from "../core/ui.js";
import { Inline, Markdown, TARGETS } from "../parts/markdown.js";
import { Search } from "../parts/search.js";
import { Treemap } from "../parts/treemap.js";

const LIMIT = 50;
const MOST = 300;
const SORTS = { rank: "Highest rating", size: "Largest", title: "Title", number: "Number" };
const VIEWS = { tree: "Tree", treemap: "Treemap", reports: "Reports" };

export default function Communities({ at }) {
  if (at.key) return html`<${Community} at=${at} />`;
  if (at.params.report) return html`<${OfReport} at=${at} />`;
  const views = Object.entries(VIEWS).filter(([key]) => key !== "treemap" || !NARROW.matches); // too small for its names
  const view = views.some(([key]) => key === at.params.view) ? at.params.view : "tree";
  const Shown = { tree: Tree, treemap: Areas, reports: Reports }[view];
  return html`<${Title}>Communities and reports</>
    <nav class="tabs" aria-label="Views">${views.map(([key, name]) =>
      html`<a href=${link("communities", "", { view: key })} aria-current=${key === view ? "true" : undefined}>${name}</a>`)}</nav>
    <${Shown} key=${view} at=${at} />`;
}

async function childrenOf(parent) {
  return get("/communities", parent === null ? { level: 0, limit: MOST } : { parent, limit: MOST });
}

class Tree extends Loaded {
  request() { return childrenOf(null); }
  show(found) { return html`<${Branch} found=${found} />`; }
}

function Branch({ found }) {
  return html`<ul class="tree">${found.communities.map((one) => html`<${Node} one=${one} key=${one.number} />`)}
    ${found.total > found.communities.length && html`<li class="none">and ${number(found.total - found.communities.length)} smaller ones; the list of reports shows all</li>`}</ul>`;
}

class Node extends Component {
  state = { isOpen: false, found: null, error: null };

  toggle = async () => {
    this.setState((old) => ({ isOpen: !old.isOpen }));
    if (this.state.found) return;
    try { this.setState({ found: await childrenOf(this.props.one.number) }); } catch (error) { this.setState({ error }); }
  };

  render({ one }, { isOpen, found, error }) {
    return html`<li>
      <div class="branch">${one.n_children ? html`<button class="twist" aria-expanded=${isOpen} aria-label=${`Parts of ${visible(one.title)}`} onClick=${this.toggle}>${isOpen ? "−" : "+"}</button>` : html`<span class="twist"></span>`}
      <a href=${link("communities", one.number)}>${visible(one.title)}</a>${" "}
      <span class="count">${count(one.size, "entity", "entities")}${one.rank === null ? "" : `, rating ${number(one.rank, 1)}`}</span></div>
      ${error && html`<${Problem} error=${error} />`}
      ${isOpen && (found ? html`<${Branch} found=${found} />` : html`<p class="busy">Loading …</p>`)}
    </li>`;
  }
}

class Areas extends Loaded {
  async request({ at: { params } }) {
    const [found, around] = await Promise.all([
      childrenOf(params.parent ?? null), params.parent ? get(`/communities/${params.parent}`) : null,
    ]);
    return { ...found, around: around?.community };
  }

  show({ communities, total, around }) {
    const up = around?.parent ? { view: "treemap", parent: around.parent.number } : { view: "treemap" };
    return html`${around && html`<p><a href=${link("communities", "", up)}>Up</a> · Inside <a href=${link("communities", around.number)}>${visible(around.title)}</a></p>`}
      <${Treemap} items=${communities.map((one) => ({
        key: one.number, size: one.size, title: one.title, about: `${count(one.size, "entity", "entities")}${one.n_children ? `, ${count(one.n_children, "part")}` : ""}`,
        href: one.n_children ? link("communities", "", { view: "treemap", parent: one.number }) : link("communities", one.number),
      }))} />
      ${total > communities.length && html`<p class="none">The ${communities.length} largest of ${number(total)}.</p>`}
      ${around && !communities.length && html`<p class="none">It has no parts.</p>`}`;
  }
}

class Reports extends Loaded {
  request({ at: { params } }) {
    return get("/reports", { search: params.search, level: params.level, sort: params.sort, limit: LIMIT, offset: params.offset });
  }

  show({ reports, total }) {
    const { params } = this.props.at;
    const turn = (offset) => go("communities", "", { ...params, view: "reports", offset });
    return html`<${Search} page="communities" params=${params} sorts=${SORTS} label="Title or text"
        hidden=${{ view: "reports" }} choices=${{ level: ["Level", [["", "all"], ["0", "0, coarsest"], ["1", "1"], ["2", "2"], ["3", "3"], ["4", "4"]]] }} />
      <${Table} label="Reports" rows=${reports} columns=${[
        ["Report", (one) => html`<a href=${link("communities", one.community)}>${visible(one.title)}</a>`],
        ["Level", (one) => one.level, "number"], ["Entities", (one) => number(one.size), "number"],
        ["Rating", (one) => number(one.rank, 1), "number"], ["Summary", (one) => excerpt(one.summary, 240), "long"]]} />
      <${Pager} offset=${Number(params.offset ?? 0)} limit=${LIMIT} total=${total} go=${turn} />`;
  }
}

class OfReport extends Loaded {
  async request({ at: { params } }) {
    const { report } = await get(`/reports/${encodeURIComponent(params.report)}`);
    location.replace(link("communities", report.community.number));
    return report;
  }

  show(report) { return html`<${Title}>${visible(report.title)}</>`; }
}

class Community extends Loaded {
  async request({ at }) {
    return (await get(`/communities/${encodeURIComponent(at.key)}`, { limit: 50 })).community;
  }

  show(one) {
    const { report } = one;
    return html`<${Title}>${visible(one.title)}</>
      <${Figures} of=${[[`Level ${one.level}`, ""], [number(one.n_entities), "entities"], [number(one.n_relationships), "relationships"], [number(one.n_text_units), "text units"]]} />
      <p class="buttons"><a class="button" href=${link("graph", "", { community: one.number })}>Show in the graph</a></p>
      ${one.parent && html`<p>Part of <a href=${link("communities", one.parent.number)}>${visible(one.parent.title || `Community ${one.parent.number}`)}</a></p>`}
      ${report ? html`<${Report} report=${report} />` : html`<p class="none">It has no report.</p>`}
      ${one.children.length > 0 && html`<h2>Parts</h2><ul>${one.children.map((child) => html`<li><a href=${link("communities", child.number)}>${visible(child.title || `Community ${child.number}`)}</a> (${count(child.size, "entity", "entities")})</li>`)}</ul>`}
      <h2>Entities</h2><${Table} label="Entities" rows=${one.entities} columns=${[
        ["Entity", (entity) => html`<a href=${link("entities", entity.number)}>${nameOf(entity)}</a>`],
        ["Type", (entity) => typeWord(entity.type)], ["Relationships", (entity) => number(entity.degree), "number"],
        ["Description", (entity) => excerpt(entity.description, 200), "long"]]} />`;
  }
}

function Report({ report }) {
  const cited = readCited(report);
  return html`<section aria-label="Report"><h2>Report</h2>
    ${report.is_fallback && html`<p class="count">Written without a model, because the model gave no usable report.</p>`}
    <${Markdown} text=${report.summary} base=${3} cited=${cited} />
    ${report.findings.length > 0 && html`<h3>Findings</h3><ol class="findings">${report.findings.map((finding) => html`<li>
      <strong><${Inline} line=${finding.summary} cited=${cited} /></strong><${Markdown} text=${finding.explanation} base=${4} cited=${cited} /></li>`)}</ol>`}
    <h3>Sources</h3>
    <ol>${[...cited.values()].map((source) => html`<li>${TARGETS[source.list] ? html`<a href=${TARGETS[source.list](source.number)}>${visible(source.name)}</a>` : visible(source.name)} <span class="count">${source.kind.replace("_", " ")}, ${count(source.n_text_units, "text unit")}</span></li>`)}</ol>
    ${report.n_cited > cited.size && html`<p class="count">The first ${cited.size} of ${number(report.n_cited)}.</p>`}
    <details><summary>${count(report.n_passages, "passage")} behind them</summary><ul>${report.passages.map((place) => html`<li>${place.start === null ? visible(place.document) : html`<a href=${link("documents", place.document_id, { start: place.start, end: place.end })}>${visible(place.document)}, characters ${place.start} to ${place.end}</a>`}</li>`)}</ul></details>
    <details class="count"><summary>Rating</summary>${number(report.rank, 1)} of 10. ${visible(report.rating_explanation)}</details>
  </section>`;
}
