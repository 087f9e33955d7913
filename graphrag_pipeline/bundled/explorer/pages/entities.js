// The page Entities: a table with search and sort, and one entity with its names, mentions, merges and evidence.

import { get } from "../core/api.js";
import { go, link } from "../core/routes.js";
import { excerpt, nameOf, typeWord, visible } from "../core/text.js";
import { count, Figures, html, Loaded, number, Pager, Table, Title } from "../core/ui.js";
import { Markdown } from "../parts/markdown.js";
import { Search } from "../parts/search.js";

const LIMIT = 50;
const MOST_LISTED = 50;
const SORTS = { degree: "Most relationships", text_units: "Most mentions", title: "Title", number: "Number" };

export default function Entities({ at }) {
  return at.key ? html`<${Entity} at=${at} />` : html`<${List} at=${at} />`;
}

class List extends Loaded {
  async request({ at: { params } }) {
    const wanted = { search: params.search, type: params.type, sort: params.sort, limit: LIMIT, offset: params.offset };
    const [found, { facets }] = await Promise.all([get("/entities", wanted), get("/facets")]);
    return { ...found, types: facets.types };
  }

  show({ entities, total, types }) {
    const { params } = this.props.at;
    const shown = [["", "all types"], ...types.map((one) => [one.value, `${typeWord(one.value) || "(none)"} (${number(one.count)})`])];
    return html`<${Title}>Entities</>
      <${Search} page="entities" params=${params} sorts=${SORTS} label="Name" choices=${{ type: ["Type", shown] }} />
      <${Table} label="Entities" rows=${entities} columns=${[
        ["Entity", (one) => html`<a href=${link("entities", one.number)}>${nameOf(one)}</a>`],
        ["Type", (one) => typeWord(one.type)],
        ["Relationships", (one) => number(one.degree), "number"],
        ["Text units", (one) => number(one.n_text_units), "number"],
        ["Description", (one) => excerpt(one.description, 200), "long"],
      ]} />
      <${Pager} offset=${Number(params.offset ?? 0)} limit=${LIMIT} total=${total} go=${(offset) => go("entities", "", { ...params, offset })} />`;
  }
}

/** One entity as a dossier: what it is, then its relationships by the type of the other end, passages and documents. */
class Entity extends Loaded {
  async request({ at }) {
    const path = `/entities/${encodeURIComponent(at.key)}`;
    const [{ entity }, { neighbourhood }] = await Promise.all([get(path, { limit: MOST_LISTED }), get(`${path}/neighbours`, { limit: MOST_LISTED })]);
    return { ...entity, near: new Map(neighbourhood.entities.map((one) => [one.entity.title, one.entity])) };
  }

  show(one) {
    const others = one.names.filter((name) => name !== one.name);
    const documents = [...new Map(one.sentences.map((place) => [place.document_id, place.document])).entries()];
    return html`<p class="pills"><span class="pill">${(one.types.length ? one.types : [one.type || "no type"]).map(typeWord).join(", ")}</span></p>
      <div class="page-head"><${Title}>${nameOf(one)}</><p class="buttons">
        <a class="button main" href=${link("ask", "", { q: `Who or what is ${one.name}?` })}>Ask about it</a> <a class="button" href=${link("graph", "", { entity: one.number })}>Show in the graph</a></p></div>
      <${Figures} of=${[[number(one.n_relationships), "relationships"], [number(one.n_text_units), "text units"], [documents.length, one.has_more_sentences ? "documents or more" : documents.length === 1 ? "document" : "documents"]]} />
      <div class="description"><${Markdown} text=${one.description || "No description."} /></div>
      ${others.length > 0 && html`<h2>Other names</h2><ul class="pills">${others.map((name) => html`<li class="pill">${visible(name)}</li>`)}</ul>`}
      ${one.merges.length > 0 && html`<details><summary>Why these names are one entity</summary><${Table} label="Merged names" rows=${one.merges} columns=${[
        ["Name", (merge) => visible(merge.name)], ["Rule", (merge) => visible(merge.rule)],
        ["Evidence", (merge) => visible(merge.evidence), "long"], ["Certainty", (merge) => number(merge.score, 2), "number"]]} /></details>`}
      ${one.relationships.length > 0 && html`<h2>Relationships</h2>
        <p class="count">${one.n_relationships > one.relationships.length ? `The ${one.relationships.length} strongest of ${number(one.n_relationships)}` : "Strongest first"}, by the type of the other entity</p>
        ${groups(one).map(([type, found], i) => html`<details class="group" open=${i === 0 || found.length <= 12}><summary>${typeWord(type)} (${found.length})</summary>
          <ul class="related">${found.map((near) => html`<li><a href=${link("entities", near.title)}><strong>${nameOf(near)}</strong></a>
            <a class="count" href=${link("relationships", near.number)}>${visible(near.predicates.join(", ") || "related")}${near.weight > 1 && `, weight ${number(near.weight)}`}</a>
            ${!isLabel(near, one) && html`<p>${excerpt(near.description, 220)}</p>`}</li>`)}</ul></details>`)}`}
      <h2>Mentions in their sentences</h2>
      ${one.sentences.length ? html`<ol class="sentences">${one.sentences.map((place) => Sentence(place, [one.title, ...one.names]))}</ol>` : html`<p class="none">No sentence writes one of its names.</p>`}
      ${one.has_more_sentences && html`<p class="none">There are more sentences than the ${one.sentences.length} shown.</p>`}
      ${documents.length > 0 && html`<h2>Documents</h2><ul class="pills">${documents.map(([id, title]) => html`<li class="pill"><a href=${link("documents", id)}>${visible(title)}</a></li>`)}</ul>`}
      ${one.communities.length > 0 && html`<h2>Communities</h2><ul>${one.communities.map((community) => html`<li>Level ${community.level}: <a href=${link("communities", community.number)}>${visible(community.title || `Community ${community.number}`)}</a> <span class="count">${count(community.size, "entity", "entities")}</span></li>`)}</ul>`}`;
  }
}

/** Return whether a description only repeats the ends and the predicates, as that of a document's label does. */
function isLabel({ title, name, predicates, description }, entity) {
  const words = (texts) => texts.join(" ").toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const known = new Set(words([title, name, ...predicates, entity.title, ...entity.names]));
  return words([description]).every((word) => known.has(word));
}

/** Return [type, relationships] pairs, the type of most relationships first. */
function groups({ relationships, near }) {
  const by = new Map();
  for (const one of relationships) {
    const type = near.get(one.title)?.type || "Other";
    by.set(type, [...(by.get(type) ?? []), one]);
  }
  return [...by].sort(([, a], [, b]) => b.length - a.length);
}

function Sentence(place, names) {
  const target = place.start === null ? null : link("documents", place.document_id, { start: place.start, end: place.end });
  return html`<li>${bold(place.text, names)} <cite>${target ? html`<a href=${target}>${visible(place.document)}</a>` : visible(place.document)}</cite></li>`;
}

/** Return a text whose occurrences of names, in any case, are strong. */
function bold(text, names) {
  const forms = [...names].filter(Boolean).sort((a, b) => b.length - a.length).map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"));
  if (!forms.length) return visible(text);
  return text.split(new RegExp(`(${forms.join("|")})`, "giu")).map((piece, i) => (i % 2 ? html`<strong>${visible(piece)}</strong>` : visible(piece)));
}
