// The page of one relationship: its ends, its description, and the passages that it comes from.

import { get } from "../core/api.js";
import { link } from "../core/routes.js";
import { nameOf, visible } from "../core/text.js";
import { count, html, Loaded, number, Title } from "../core/ui.js";
import { Markdown } from "../parts/markdown.js";

export default class Relationship extends Loaded {
  async request({ at }) {
    return (await get(`/relationships/${encodeURIComponent(at.key)}`, { limit: 50 })).relationship;
  }

  show(one) {
    return html`<${Title}>${nameOf(one.source)} – ${nameOf(one.target)}</>
      <p>Relationship ${one.number} between ${Entity(one.source)} and ${Entity(one.target)} · weight ${number(one.weight)} · <a href=${link("graph", "", { entity: one.source.number })}>Show in the graph</a></p>
      <${Markdown} text=${one.description || "No description."} />
      <h2>Passages</h2>
      <p class="count">${count(one.n_passages, "passage")}</p>
      <ol class="sentences">${one.passages.map((place) => html`<li>${visible(place.text)} <cite>${Place(place)}</cite></li>`)}</ol>`;
  }
}

function Entity(one) {
  return html`<a href=${link("entities", one.number)}>${nameOf(one)}</a>`;
}

function Place(place) {
  if (place.start === null) return visible(place.document);
  return html`<a href=${link("documents", place.document_id, { start: place.start, end: place.end })}>${visible(place.document)}</a>`;
}
