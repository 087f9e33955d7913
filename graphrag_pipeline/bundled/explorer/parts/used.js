// The records that a search read: entities, relationships, reports and text units, with links to their pages.

import { link } from "../core/routes.js";
import { excerpt, typeWord, visible } from "../core/text.js";
import { html, number, Table } from "../core/ui.js";

export function Used({ context }) {
  const { entities = [], relationships = [], reports = [], text_units: units = [] } = context;
  return html`<section aria-label="Used for this answer">
    <${Part} name="Entities" rows=${entities} columns=${[
      ["Entity", (one) => html`<a href=${link("entities", one.human_readable_id)}>${visible(one.title)}</a>`],
      ["Type", (one) => typeWord(one.type)],
      ["Found by", (one) => one.match],
      ["Relationships", (one) => number(one.rank), "number"],
      ["In the context", inContext],
    ]} />
    <${Part} name="Relationships" rows=${relationships} columns=${[
      ["Relationship", (one) => html`<a href=${link("relationships", one.human_readable_id)}>${visible(one.source)} — ${visible(one.target)}</a>`],
      ["Description", (one) => excerpt(one.description, 240), "long"], ["Weight", (one) => number(one.weight), "number"],
      ["In the context", inContext],
    ]} />
    <${Part} name="Reports" rows=${reports} columns=${[
      ["Report", (one) => html`<a href=${link("communities", one.community)}>${visible(one.title)}</a>`],
      ["Level", (one) => one.level, "number"], ["Rating", (one) => number(one.rank, 1), "number"], ["In the context", inContext],
    ]} />
    <${Part} name="Text units" rows=${units} columns=${[
      ["Text unit", (one) => html`<a href=${link("documents", "", { unit: one.human_readable_id })}>${one.human_readable_id}</a>`, "number"],
      ["Document", (one) => visible(one.document_title)], ["Tokens", (one) => number(one.n_tokens), "number"],
      ["Score", (one) => number(one.score), "number"], ["Text", (one) => excerpt(one.text, 160), "long"],
    ]} />
  </section>`;
}

function inContext(one) {
  return one.in_context === undefined ? "yes" : one.in_context ? "yes" : "no";
}

function Part({ name, rows, columns }) {
  if (!rows.length) return html`<p class="none">No ${name.toLowerCase()}.</p>`;
  return html`<details><summary>${name} (${rows.length})</summary><${Table} label=${name} rows=${rows} columns=${columns} /></details>`;
}
