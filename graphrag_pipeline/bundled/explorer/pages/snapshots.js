// The page Snapshots: a timeline of published states of the index, and what changed from one to the next, and why.

import { get } from "../core/api.js";
import { go, link } from "../core/routes.js";
import { age, visible } from "../core/text.js";
import { count, html, Loaded, number, Title } from "../core/ui.js";

const MOST = 200;
const COUNTED = { documents: "documents", entities: "entities", relationships: "relationships", community_reports: "reports" };
const SIGNS = { added: "+", removed: "−", merged: "→" };

export default class Snapshots extends Loaded {
  async request({ at: { params } }) {
    const { snapshots } = await get("/snapshots", {}, { isFresh: true });
    const to = params.to ?? snapshots.find((one) => one.is_published)?.id ?? snapshots[0]?.id;
    const from = params.from ?? snapshots[snapshots.findIndex((one) => one.id === to) + 1]?.id;
    const compared = from && to && from !== to ? (await get("/snapshots/diff", { from, to })).diff : null;
    return { snapshots, from, to, diff: compared };
  }

  show({ snapshots, from, to, diff }) {
    const pick = (event) => go("snapshots", "", Object.fromEntries(new FormData(event.target.form)));
    const choice = (name, chosen, text) => html`<label>${text} <select name=${name} onChange=${pick}>${snapshots.map((one) =>
      html`<option value=${one.id} selected=${one.id === chosen}>${one.id.slice(0, 8)}, ${one.created.slice(0, 16).replace("T", " ")}</option>`)}</select></label>`;
    return html`<${Title}>Snapshots</>
      <p class="lead">Each run publishes a whole state of the index. Readers see the published one.</p>
      ${snapshots.length > 1 && html`<details class="compare"><summary>Compare any two</summary><form class="search">${choice("from", from, "From")} ${choice("to", to, "to")}</form></details>`}
      <ol class="timeline">${snapshots.map((one, i) => html`<li key=${one.id} class=${one.is_published ? "published" : ""}>
        <${Moment} one=${one} before=${snapshots[i + 1]} isOpen=${one.id === to} />
        ${one.id === to && (diff ? html`<${Diff} diff=${diff} isNext=${from === snapshots[i + 1]?.id} />`
          : html`<p class="none">${i === snapshots.length - 1 ? "The first snapshot that is kept: nothing to compare it with." : "Choose two different snapshots."}</p>`)}
      </li>`)}</ol>`;
  }
}

function Moment({ one, before, isOpen }) {
  const words = [[one.is_published, "published", "good"], [one.is_pinned, "pinned", "watch"], [one.is_imported, "imported", ""], [one.is_waiting, "waiting", "watch"]];
  return html`<h2><time datetime=${one.created}>${age(one.created)}</time> ${words.filter(([is]) => is).map(([, word, kind]) => html` <span class=${`pill ${kind}`}>${word}</span>`)}${one.refusal && !one.is_waiting && html` <span class="pill bad">refused</span>`}</h2>
    <p class="count"><code>${one.id}</code> · ${one.created.slice(0, 19).replace("T", " ")} UTC</p>
    ${one.is_waiting && html`<p><a href=${link("review", one.id)}>Review it</a></p>`}
    ${one.refusal && !one.is_waiting && html`<p>Refused: ${visible(one.refusal)}</p>`}
    ${one.notes.map((note) => html`<p class="count">${visible(note)}</p>`)}
    <ul class="figures">${Object.entries(COUNTED).map(([table, name]) => html`<li><strong>${number(one.rows[table])}</strong> ${name}${before && html`<${Delta} of=${one.rows[table] - before.rows[table]} />`}</li>`)}</ul>
    ${before && !isOpen && html`<p><a href=${link("snapshots", "", { from: before.id, to: one.id })}>What changed</a></p>`}`;
}

function Delta({ of }) { return of ? html` <span class="delta">${of > 0 ? "+" : "−"}${number(Math.abs(of))}</span>` : ""; }

export function Diff({ diff, isNext }) {
  const { documents, stages } = diff;
  return html`<div class="diff">${!isNext && html`<p>Compared with <code>${diff.old}</code>.</p>`}
    <h3>Why</h3>
    ${documents.length + stages.length === 0 && html`<p class="none">No document and no stage changed.</p>`}
    <${Changes} name="document" rows=${documents} show=${(one) => html`<${Sign} of=${one.change} /> ${visible(one.path)}${one.record && ` # ${visible(one.record)}`}`} />
    <${Changes} name="stage" rows=${stages} show=${(one) => html`<strong>${one.stage}</strong>: ${visible(one.changes.join("; ") || "its code or settings changed")}`} />
    <h3>What changed</h3>
    <${Changes} name="entity" many="entities" isSaid=${true} rows=${diff.entities} show=${(one) => html`<${Sign} of=${one.change} /> ${one.change === "removed" || one.into ? visible(one.title) : html`<a href=${link("entities", one.number)}>${visible(one.title)}</a>`}
      ${one.into && ` into ${visible(one.into)} by ${visible(one.rule)}`}${because(one.documents)}`} />
    <${Changes} name="relationship" isSaid=${true} rows=${diff.relationships} show=${(one) => { const pair = visible(`${one.source} — ${one.target}`);
      return html`<${Sign} of=${one.change} /> ${one.change === "removed" ? pair : html`<a href=${link("relationships", one.number)}>${pair}</a>`}, weight ${number(one.weight)}${because(one.documents)}`; }} />
    <${Changes} name="report" isSaid=${true} rows=${diff.reports} show=${(one) => html`<${Sign} of=${one.change} /> ${one.change === "removed" ? visible(one.title) : html`<a href=${link("communities", one.community)}>${visible(one.title)}</a>`}, level ${one.level}${because(one.documents)}`} />
  </div>`;
}

function Sign({ of }) {
  const kind = of === "added" ? "good" : of === "removed" ? "bad" : "watch";
  return html`<span class=${`pill ${kind}`}>${SIGNS[of] ?? "~"} ${visible(of)}</span>`;
}

function because(documents) {
  return documents.length ? html` <span class="count">because of ${visible(documents.slice(0, 5).join(", "))}${documents.length > 5 ? ` and ${documents.length - 5} more` : ""}</span>` : "";
}

function Changes({ name, many, rows, show, isSaid }) {
  if (!rows.length) return isSaid ? html`<p class="none">No ${name} changed.</p>` : "";
  return html`<details open=${rows.length <= 30}><summary>${count(rows.length, name, many)}</summary>
    <ul class="changes">${rows.slice(0, MOST).map((one) => html`<li>${show(one)}</li>`)}</ul>${rows.length > MOST && html`<p class="none">The first ${MOST}. <code>graphrag-pipeline snapshots diff</code> prints all.</p>`}</details>`;
}
