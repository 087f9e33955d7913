// Markdown of answers and reports as elements; citations become buttons and links. HTML in it stays text.

import { readBlocks, readInline, visible } from "../core/text.js";
import { link } from "../core/routes.js";
import { h, html } from "../core/ui.js";

const TARGETS = {
  Entities: (number) => link("entities", number),
  Relationships: (number) => link("relationships", number),
  Reports: (number) => link("communities", "", { report: number }),
  Sources: (number) => link("documents", "", { unit: number }),
};

export function Markdown({ text, cite, base = 2 }) {
  return html`<div class="markdown">${readBlocks(text).map((block) => show(block, cite, base))}</div>`;
}

function show(block, cite, base) {
  const inline = (line) => Inline({ line, cite });
  if (block.kind === "heading") return h(`h${Math.min(6, block.level + base - 1)}`, null, inline(block.lines[0]));
  if (block.kind === "code") return html`<pre tabindex="0">${visible(block.lines.join("\n"))}</pre>`;
  if (block.kind === "bullets") return html`<ul>${block.items.map((item) => html`<li>${inline(item)}</li>`)}</ul>`;
  if (block.kind === "numbers") return html`<ol>${block.items.map((item) => html`<li>${inline(item)}</li>`)}</ol>`;
  return h(block.kind === "quote" ? "blockquote" : "p", null, block.lines.map((line, i) => [i ? "\n" : "", inline(line)]));
}

export function Inline({ line, cite }) {
  return readInline(line).map((piece) => {
    if (piece.kind === "citation") return html`<span class="citations">${piece.numbers.map((one) => Citation(one, cite))}</span>`;
    if (piece.kind === "data") return piece.records.map(([kind, numbers]) => DataLinks(kind, numbers));
    if (piece.kind === "link") {
      return html`<a href=${piece.address} rel="noreferrer noopener nofollow" target="_blank">${visible(piece.text)} (outside)</a>`;
    }
    return piece.kind === "text" ? visible(piece.text) : h(piece.kind, null, visible(piece.text));
  });
}

function Citation(number, cite) {
  if (!cite) return `[${number}]`;
  return html`<button class="citation" aria-label=${`Open source ${number}`} onClick=${() => cite(number)}>${number}</button>`;
}

function DataLinks(kind, numbers) {
  const target = TARGETS[kind];
  return html`<span class="data">${kind} ${numbers.map((one, i) => [i ? ", " : "", target ? html`<a href=${target(one)}>${one}</a>` : one])}</span>`;
}
