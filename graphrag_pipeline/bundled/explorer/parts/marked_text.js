// A part of a document's text: mentions of entities are links, cited spans are marked; the first one is scrolled to.

import { link } from "../core/routes.js";
import { markUp, visible } from "../core/text.js";
import { Component, createRef, html } from "../core/ui.js";

export class MarkedText extends Component {
  place = createRef();

  componentDidMount() { this.scroll(); }
  componentDidUpdate(before) { if (before.text !== this.props.text || before.cited !== this.props.cited) this.scroll(); }

  scroll() {
    const mark = this.place.current?.querySelector("mark");
    if (!mark) return;
    this.place.current.scrollTop = mark.offsetTop - 60; // offsets count from the box, which is positioned
    mark.scrollIntoView({ block: "nearest" });
  }

  render() {
    const { text, first = 0, mentions = [], cited = [] } = this.props;
    const marks = [...cited.map(({ start, end }) => ({ start, end, isCited: true })), ...mentions];
    return html`<div class="document-text" ref=${this.place} tabindex="0" role="region" aria-label="Text of the document">
      ${join(markUp(text, marks, first)).map(([isCited, pieces]) => (isCited ? html`<mark>${pieces}</mark>` : pieces))}</div>`;
  }
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
    ? html`<a class="mention" href=${link("entities", mention.number)} title=${visible(`${mention.title} (${mention.type})`)}>${piece}</a>` : piece;
}
