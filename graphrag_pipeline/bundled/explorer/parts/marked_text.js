// A part of a document's text: mentions of entities are links, cited spans are marked; the first one is scrolled to.
// Documents in Markdown, and those that were converted to it, are rendered; offsets still count in the stored text.

import { link } from "../core/routes.js";
import { lengthOf, markUp, nameOf, typeWord, visible } from "../core/text.js";
import { Component, createRef, html } from "../core/ui.js";
import { Inline, Markdown } from "./markdown.js";

const RENDERED = /\.(?:md|markdown|html?|pdf|docx|pptx|xlsx)$/i;
/** Return a plain text whose lines of prose, broken at a fixed width, run on; every offset stays. */
const runOn = (text) => text.replace(/(?<=[^\n]{50})\n(?=[\p{L}"'“‘(])/gu, " ");

export class MarkedText extends Component {
  place = createRef();

  componentDidMount() { this.scroll(); }
  componentDidUpdate(before) { if (before.text !== this.props.text || before.cited !== this.props.cited) this.scroll(); }

  scroll() {
    const mark = this.place.current?.querySelector("mark");
    if (!mark) return;
    const box = this.place.current;
    box.scrollTop += mark.getBoundingClientRect().top - box.getBoundingClientRect().top - 60;
    mark.scrollIntoView({ block: "nearest" });
  }

  render() {
    const isRendered = RENDERED.test(this.props.path);
    return html`<div class=${isRendered ? "document-text rendered" : "document-text"} ref=${this.place} tabindex="0" role="region" aria-label="Text of the document"><${Marked} ...${this.props} /></div>`;
  }
}

/** The text alone; a line of a document is a paragraph, whatever it begins with. */
export function Marked({ text, first = 0, mentions = [], cited = [], path = "", isLine = false }) {
  const marks = [...cited.map(({ start, end }) => ({ start, end, isCited: true })), ...mentions];
  const points = counter(text);
  const leaf = (piece, at = 0) => join(markUp(piece, marks, first + points(at))).map(([isCited, pieces]) => (isCited ? html`<mark>${pieces}</mark>` : pieces));
  if (!RENDERED.test(path)) return isLine ? html`<p>${leaf(text)}</p>` : leaf(path.endsWith(".txt") ? runOn(text) : text);
  return isLine ? html`<p>${Inline({ line: { text, at: 0 }, leaf })}</p>` : html`<${Markdown} text=${text} leaf=${leaf} base=${3} />`;
}

/** Return a function from an offset in a text to code points, for offsets that grow. */
function counter(text) {
  let [before, n] = [0, 0];
  return (at) => {
    if (at < before) [before, n] = [0, 0];
    n += lengthOf(text.slice(before, at));
    before = at;
    return n;
  };
}

/** Return [whether it is cited, elements] for each run of pieces. */
function join(pieces) {
  const runs = [];
  for (const [piece, over] of pieces) {
    const isCited = over.some((mark) => mark.isCited);
    if (!runs.length || runs[runs.length - 1][0] !== isCited) runs.push([isCited, []]);
    runs[runs.length - 1][1].push(show(visible(piece), over));
  }
  return runs;
}

function show(piece, over) {
  const mention = over.find((mark) => !mark.isCited);
  return mention
    ? html`<a class="mention" href=${link("entities", mention.number)} title=${`${nameOf(mention)} (${typeWord(mention.type)})`}>${piece}</a>` : piece;
}
