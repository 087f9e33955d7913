// The page of one relationship: its ends, its description, and the sentences of the passages that it comes from.

import { get } from "../core/api.js";
import { link } from "../core/routes.js";
import { lengthOf, nameOf, visible } from "../core/text.js";
import { count, html, Loaded, number, Title } from "../core/ui.js";
import { Markdown } from "../parts/markdown.js";
import { Marked } from "../parts/marked_text.js";

const MOST = 20; // passages; the mentions of each are a request
// Ends of sentences, headings, items of lists and lines with a label; a line of prose that is broken at a fixed width runs on.
const END = /(?<=\p{Ll}{2}[.!?]["”’)*_`]*)\s+|(?<=^#.*)\n\s*|\n\s*(?:\n\s*|(?=[-*+|#]|\d+[.)]\s|\p{Lu}[\p{L} ]{1,30}:))/gmu;

export default class Relationship extends Loaded {
  async request({ at }) {
    const { relationship: one } = await get(`/relationships/${encodeURIComponent(at.key)}`, { limit: MOST });
    const ends = [one.source.number, one.target.number];
    const passages = await Promise.all(one.passages.map(async (place) => {
      if (place.start === null) return { ...place, sentences: [{ text: place.text, start: 0, mentions: [] }] };
      const found = await get(`/documents/${encodeURIComponent(place.document_id)}/mentions`, { start: place.start, end: place.end, limit: 10000 }).catch(() => ({ mentions: [] }));
      return { ...place, sentences: joining(place, found.mentions.filter((mention) => ends.includes(mention.number)), ends) };
    }));
    return { ...one, passages };
  }

  show({ source, target, predicates, description, weight, passages, n_passages: n }) {
    return html`<div class="page-head"><${Title}>${Entity(source)} — ${Entity(target)}${predicates.length > 0 && visible(`: ${predicates.join(", ")}`)}</>
        <p class="buttons"><a class="button" href=${link("graph", "", { entity: source.number })}>Show in the graph</a></p></div>
      <p class="count">${count(n, "passage")}, weight ${number(weight)}${n > passages.length && `; the first ${passages.length} are shown`}</p>
      ${description && html`<${Markdown} text=${description} />`}
      <ol class="joined">${passages.map((place) => html`<li>${place.sentences.map((one) => html`<${Marked} isLine text=${one.text} first=${one.start} mentions=${one.mentions} path=${place.path} />`)}
        <cite class="count">${Place(place)}</cite></li>`)}</ol>`;
  }
}

/** Return the sentences {text, start, mentions} of a passage that name both ends; else the first of each end, else its beginning. */
function joining({ text, start }, mentions, ends) {
  let at = 0;
  const sentences = [...text.matchAll(END), { index: text.length, 0: "" }].map((found) => {
    const sentence = text.slice(at, found.index);
    const end = start + lengthOf(sentence);
    const one = { text: asLine(sentence), start, mentions: mentions.filter((mention) => mention.start >= start && mention.end <= end) };
    [at, start] = [found.index + found[0].length, end + lengthOf(found[0])];
    return one;
  });
  const names = (one, end) => one.mentions.some((mention) => mention.number === end);
  const both = sentences.filter((one) => ends.every((end) => names(one, end)));
  const firsts = new Set(ends.map((end) => sentences.find((one) => names(one, end))).filter(Boolean));
  return both.length ? both : firsts.size ? sentences.filter((one) => firsts.has(one)) : sentences.filter((one) => one.text.trim()).slice(0, 1);
}

/** Return a row of a table, a heading or an item of a list as a line of as many characters. */
function asLine(text) {
  const line = text.replace(/^\s*(?:#+|[-*+](?=\s)|\|)|\|\s*$/g, (marks) => " ".repeat(marks.length));
  return text.startsWith("|") ? line.replaceAll("|", "·") : line;
}

const Entity = (one) => html`<a href=${link("entities", one.number)}>${nameOf(one)}</a>`;
const Place = ({ document, document_id: id, start, end }) => (start === null ? visible(document) : html`<a href=${link("documents", id, { start, end })}>${visible(document)}</a>`);
