// The page Entities: a table with search and sort, and one entity with its names, mentions, merges and evidence.

import { get } from "../core/api.js";
import { go, link } from "../core/routes.js";
import { shorten, visible } from "../core/text.js";
import { count, html, Loaded, number, Pager, Table, Title } from "../core/ui.js";
import { Search } from "../parts/search.js";

const LIMIT = 50;
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
    const shown = [["", "all types"], ...types.map((one) => [one.value, `${one.value || "(none)"} (${number(one.count)})`])];
    return html`<${Title}>Entities</>
      <${Search} page="entities" params=${params} sorts=${SORTS} label="Name" choices=${{ type: ["Type", shown] }} />
      <${Table} label="Entities" rows=${entities} columns=${[
        ["Entity", (one) => html`<a href=${link("entities", one.number)}>${visible(one.title)}</a>`],
        ["Type", (one) => visible(one.type)],
        ["Relationships", (one) => number(one.degree), "number"],
        ["Text units", (one) => number(one.n_text_units), "number"],
        ["Description", (one) => shorten(one.description, 200), "long"],
      ]} />
      <${Pager} offset=${Number(params.offset ?? 0)} limit=${LIMIT} total=${total} go=${(offset) => go("entities", "", { ...params, offset })} />`;
  }
}

class Entity extends Loaded {
  async request({ at }) {
    return (await get(`/entities/${encodeURIComponent(at.key)}`, { limit: 50 })).entity;
  }

  show(one) {
    return html`<${Title}>${visible(one.title)}</>
      <p>${visible(one.types.join(", ") || one.type)} · ${count(one.n_text_units, "text unit")} · <a href=${link("graph", "", { entity: one.number })}>Show in the graph</a> · <a href=${link("ask", "", { q: `Who or what is ${one.title}?` })}>Ask about it</a></p>
      <p class="description">${visible(one.description || "No description.")}</p>
      <h2>Names</h2>
      ${one.names.length ? html`<ul>${one.names.map((name) => html`<li>${visible(name)}</li>`)}</ul>` : html`<p class="none">No other name.</p>`}
      ${one.merges.length > 0 && html`<h3>Merged names</h3><${Table} label="Merged names" rows=${one.merges} columns=${[
        ["Name", (merge) => visible(merge.name)], ["Rule", (merge) => visible(merge.rule)],
        ["Evidence", (merge) => visible(merge.evidence), "long"], ["Certainty", (merge) => number(merge.score, 2), "number"]]} />`}
      <h2>Mentions in their sentences</h2>
      ${one.sentences.length ? html`<ol class="sentences">${one.sentences.map((place) => Sentence(place, [one.title, ...one.names]))}</ol>` : html`<p class="none">No sentence writes one of its names.</p>`}
      ${one.has_more_sentences && html`<p class="none">There are more sentences than the ${one.sentences.length} shown.</p>`}
      <h2>Relationships</h2>
      <${Table} label="Relationships" rows=${one.relationships} columns=${[
        ["With", (near) => html`<a href=${link("entities", near.title)}>${visible(near.title)}</a>`],
        ["Description", (near) => visible(near.description), "long"], ["Weight", (near) => number(near.weight), "number"]]} />
      <p class="count">${count(one.n_relationships, "relationship")}, strongest first</p>
      <h2>Communities</h2>
      <ul>${one.communities.map((community) => html`<li>Level ${community.level}: <a href=${link("communities", community.number)}>${visible(community.title || `Community ${community.number}`)}</a> (${count(community.size, "entity", "entities")})</li>`)}</ul>`;
  }
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
