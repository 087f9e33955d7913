// The page Documents: a list with status, and one document with its mentions marked, a part at a time.

import { get } from "../core/api.js";
import { go, link } from "../core/routes.js";
import { nameOf, shorten, visible } from "../core/text.js";
import { html, Loaded, number, Pager, Problem, Table, Title } from "../core/ui.js";
import { MarkedText } from "../parts/marked_text.js";
import { Search } from "../parts/search.js";

const LIMIT = 50;
const PART = 20000;
const MOST_UNREAD = 200;
const MOST_PILLS = 3;
const [BEGINNING, MOST_LABELS] = [3000, 40]; // characters and lines in which a text says its facts
const SORTS = { number: "Reading order", title: "Title", path: "Path", date: "Newest first" };

export default function Documents({ at }) {
  if (at.key) return html`<${Document} at=${at} />`;
  return at.params.unit ? html`<${TextUnit} at=${at} />` : html`<${List} at=${at} />`;
}

class List extends Loaded {
  async request({ at: { params } }) {
    const unread = params.search || params.offset ? null : get("/unread-documents", { limit: MOST_UNREAD }).catch((error) => ({ error }));
    const [list, rest] = await Promise.all([
      get("/documents", { search: params.search, sort: params.sort, limit: LIMIT, offset: params.offset }), unread,
    ]);
    return { ...list, rest };
  }

  show({ documents, total, rest }) {
    const { params } = this.props.at;
    return html`<${Title}>Documents</>
      <${Search} page="documents" params=${params} sorts=${SORTS} label="Title or path" />
      <${Table} label="Documents" rows=${documents} columns=${[
        ["Document", (one) => html`<a href=${link("documents", one.number)}>${visible(one.title)}</a>`],
        ["Path", (one) => placeOf(one), "brief"],
        ["Date", (one) => visible(one.creation_date ?? ""), "date brief"],
        ["Characters", (one) => number(one.n_characters), "number less"],
        ["About", pillsOf, "long"],
      ]} />
      <${Pager} offset=${Number(params.offset ?? 0)} limit=${LIMIT} total=${total} go=${(offset) => go("documents", "", { ...params, offset })} />
      ${rest && html`<${Unread} of=${rest} />`}`;
  }
}

/** The documents that the snapshot lacks, and those read with a note; nothing if each was read. */
function Unread({ of: { unread, total, error } }) {
  if (error) return html`<h2>Not read</h2><${Problem} error=${error} />`;
  if (!total) return "";
  return html`<h2>Not read, or read with a note</h2>
    <${Table} label="Documents that were not read, or read with a note" rows=${unread} columns=${[
      ["Path", (one) => placeOf(one)],
      ["Status", (one) => (one.problem ? "not read" : "indexed, with a note")],
      ["Reason or note", (one) => visible(one.problem || one.note), "long"],
      ["Bytes", (one) => number(one.n_bytes), "number"],
    ]} />
    ${total > unread.length && html`<p class="count">The first ${number(unread.length)} of ${number(total)}. \`graphrag-pipeline status\` lists those of the input folder.</p>`}`;
}

/** Return the first facts of a document that its title and date do not say, and that it is empty if it is. */
function pillsOf({ title, creation_date: date, metadata, n_text_units: n }) {
  const facts = Object.entries(metadata ?? {}).map(([name, value]) => [label(name), show(value)]).filter(([name, value]) => name !== "date" && value && value !== title && Date.parse(`${value} UTC`) !== Date.parse(date));
  const pills = [...(n ? [] : [["empty", "no text unit"]]), ...facts].slice(0, MOST_PILLS);
  return pills.length > 0 && html`<ul class="pills">${pills.map(([name, value]) => html`<li class="pill" title=${visible(value)}>${shorten(`${name}: ${value}`, 40)}</li>`)}</ul>`;
}

const placeOf = ({ path, record }) => visible(record ? `${path} #${record.replace(/^#/, "")}` : path);
const label = (name) => visible(name.replaceAll("_", " "));

/** Return the labels of a text's first lines, as `Led by: …`, `**Led by:** …` or `| Led by | … |` write them. */
function labelsIn(text) {
  const lines = text.slice(0, BEGINNING).split("\n").slice(0, MOST_LABELS);
  return new Set(lines.map((line) => /^[\s|*_-]*([^|:*]+?)[\s*_]*[|:]/.exec(line)?.[1].toLowerCase().replaceAll("_", " ")));
}

function show(value) {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

class Document extends Loaded {
  async request({ at: { key, params } }) {
    const cited = params.start === undefined ? null : { start: Number(params.start), end: Number(params.end) };
    const from = Number(params.from ?? Math.max(0, (cited?.start ?? 0) - PART / 4));
    const path = `/documents/${encodeURIComponent(key)}`;
    const range = { start: from, end: from + PART };
    const [page, text, mentions] = await Promise.all([
      get(path, { limit: 20 }), get(`${path}/text`, range), get(`${path}/mentions`, { ...range, limit: 10000 }),
    ]);
    return { page: page.document, text: text.document, mentions: mentions.mentions, cited };
  }

  show({ page, text, mentions, cited }) {
    const labels = labelsIn(text.text);
    const turn = (from) => go("documents", this.props.at.key, { from });
    return html`<${Title}>${visible(page.title)}</>
      <dl class="facts">
        <dt>Path</dt><dd>${placeOf(page) || "–"}</dd>
        ${page.creation_date && html`<dt>Date</dt><dd>${visible(page.creation_date)}</dd>`}
        ${Object.entries(page.metadata).filter(([name]) => name !== "date" && !labels.has(label(name).toLowerCase())).map(([name, value]) => html`<dt>${label(name)}</dt><dd>${visible(show(value))}</dd>`)}
        ${!page.n_text_units && html`<dt>Status</dt><dd>empty: no text unit</dd>`}
        <dt>Mentions most</dt><dd>${page.entities.filter((one) => nameOf(one) !== visible(page.title)).slice(0, 12).map((one, i) => [i ? ", " : "", html`<a href=${link("entities", one.number)}>${nameOf(one)}</a>`])}</dd>
      </dl>
      <h2>Text</h2>
      <p class="count">${text.n_characters > PART && `Characters ${number(text.start)} to ${number(text.end)} of ${number(text.n_characters)}. `}Underlined names lead to their entity${cited ? "; the frame marks the cited passage" : ""}.</p>
      ${text.n_characters > PART && html`<nav class="pager" aria-label="Parts of the text">
        <button disabled=${text.start === 0} onClick=${() => turn(Math.max(0, text.start - PART))}>Earlier part</button>
        <button disabled=${text.end >= text.n_characters} onClick=${() => turn(text.end)}>Later part</button></nav>`}
      <${MarkedText} text=${text.text} first=${text.start} mentions=${mentions} cited=${cited ? [cited] : []} path=${page.path} />`;
  }
}

class TextUnit extends Loaded {
  async request({ at: { params } }) {
    const { text_unit: unit } = await get(`/text-units/${encodeURIComponent(params.unit)}`);
    if (unit.start !== null) location.replace(link("documents", unit.document_id, { start: unit.start, end: unit.end }));
    return unit;
  }

  show(unit) {
    return html`<${Title}>Text unit ${unit.number} of ${visible(unit.document)}</><${MarkedText} text=${unit.text} />`;
  }
}
