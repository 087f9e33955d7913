// Markdown of answers, reports and documents as elements; citations become buttons and links. HTML in it stays text,
// a picture is its description, a link to another server is its text and its address, and one to another file is its text.

import { readBlocks, readInline, visible } from "../core/text.js";
import { link } from "../core/routes.js";
import { h, html } from "../core/ui.js";

const ELSEWHERE = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;
const HARD = / {2,}$/; // such a line ends with a break; the others run on, where the style lets them
export const TARGETS = {
  Entities: (number) => link("entities", number),
  Relationships: (number) => link("relationships", number),
  Reports: (number) => link("communities", "", { report: number }),
  Sources: (number) => link("documents", "", { unit: number }),
};

/** `leaf` shows a text without marks from its offset in `text`; `base` is the level of a first heading; `cited` is of `readCited`. */
export function Markdown({ text, cite, base = 2, leaf = visible, cited }) {
  return html`<div class="markdown">${readBlocks(text).map((block) => show(block, base, leaf, { cite, leaf, cited }))}</div>`;
}

function show(block, base, leaf, how) {
  const lines = (found) => found.map((line, i) => [i ? (HARD.test(found[i - 1].text) ? html`<br />` : "\n") : "", Inline({ line, ...how })]);
  if (block.kind === "heading") return h(`h${Math.min(6, block.level + base - 1)}`, null, lines(block.lines));
  if (block.kind === "front") return html`<dl class="facts">${block.lines.map((line) => Fact(line, leaf))}</dl>`;
  if (block.kind === "rule") return html`<hr />`;
  if (block.kind === "code") return html`<pre tabindex="0">${block.lines.map((line) => [leaf(line.text, line.at), "\n"])}</pre>`;
  if (block.kind === "table") return Grid(block.rows, (cell) => lines([cell]));
  if (block.items) {
    const items = block.items.map((item) => html`<li class=${`depth-${item.depth}`}>${lines(item.lines)}</li>`);
    return block.kind === "bullets" ? html`<ul>${items}</ul>` : html`<ol start=${block.start}>${items}</ol>`;
  }
  return h(block.kind === "quote" ? "blockquote" : "p", null, lines(block.lines));
}

/** A line of front matter, `label: value`; one without a label goes on with the value above it. */
function Fact({ text, at }, leaf) {
  const [start, label = ""] = /^([\w-]+):\s*/.exec(text) ?? [/^\s*/.exec(text)[0]];
  return [label && html`<dt>${leaf(label.replaceAll("_", " "), at)}</dt>`, start.length < text.length && html`<dd>${leaf(text.slice(start.length), at + start.length)}</dd>`];
}

function Grid([head, ...rows], inline) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>
    <thead><tr>${head.map((cell) => html`<th scope="col">${inline(cell)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${inline(cell)}</td>`)}</tr>`)}</tbody></table></div>`;
}

/** A line {text, at}, or a text, with its marks as elements. */
export function Inline({ line, cite, leaf = visible, cited }) {
  return readInline(typeof line === "string" ? { text: line, at: 0 } : line).map((piece, i, pieces) => {
    if (piece.kind === "citation") return cite ? html`<span class="citations">${piece.numbers.map((one) => Citation(one, cite))}</span>` : ["[", leaf(piece.text, piece.at), "]"];
    if (piece.kind === "data") return piece.records.map(([kind, numbers]) => DataLinks(kind, numbers, cited));
    if (piece.kind === "picture") return html`<span class="count">[picture: ${leaf(piece.text, piece.at)}]</span>`;
    if (piece.kind === "link") return [leaf(piece.text, piece.at), ELSEWHERE.test(piece.address) && html` <span class="count">(${visible(piece.address)})</span>`];
    if (cite && pieces[i + 1]?.kind === "citation") piece.text = piece.text.replace(/ $/, "\u00a0"); // stays beside its word
    return piece.kind === "text" ? leaf(piece.text, piece.at) : h(piece.kind, null, leaf(piece.text, piece.at));
  });
}

function Citation(number, cite) {
  return html`<button class="citation" aria-label=${`Open source ${number}`} onClick=${() => cite(number)}>${number}</button>`;
}

/** Chips of the records that are known, numbered as in the list of sources; the others as they are written. */
function DataLinks(kind, numbers, cited = new Map()) {
  const [target, known] = [TARGETS[kind], numbers.map((one) => [one, cited.get(`${kind} ${one}`)])];
  const chips = known.filter(([, record]) => record).map(([number, { place, name }]) => h(target ? "a" : "span", { class: "citation", href: target?.(number), title: visible(name), "aria-label": `Source ${place}: ${visible(name)}` }, place));
  const rest = known.filter(([, record]) => !record);
  return [chips, rest.length > 0 && html`<span class="data">${kind} ${rest.map(([one], i) => [i ? ", " : "", target ? html`<a href=${target(one)}>${one}</a>` : one])}</span>`];
}
