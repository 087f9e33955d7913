// The document of a citation beside the answer: scrolled to the quotation, which is marked.

import { get } from "../core/api.js";
import { link } from "../core/routes.js";
import { pages, visible } from "../core/text.js";
import { createRef, html, Loaded, Problem, Busy } from "../core/ui.js";
import { MarkedText } from "./marked_text.js";

const AROUND = 4000;

export class Passage extends Loaded {
  heading = createRef();

  key() { return String(this.props.citation.number) + this.props.citation.id + this.props.citation.start; }

  async request({ citation }) {
    if (citation.start === null) return { text: citation.quote, start: 0, mentions: [] };
    const range = { start: Math.max(0, citation.start - AROUND), end: citation.end + AROUND };
    const at = `/documents/${encodeURIComponent(citation.document_id)}`;
    const [text, mentions] = await Promise.all([get(`${at}/text`, range), get(`${at}/mentions`, range).catch(() => ({ mentions: [] }))]);
    return { ...text.document, mentions: mentions.mentions };
  }

  componentDidMount() { super.componentDidMount(); this.heading.current?.focus(); }
  componentDidUpdate(before) {
    super.componentDidUpdate();
    if (before.citation !== this.props.citation) this.heading.current?.focus();
  }

  render() {
    const { citation, close } = this.props;
    const { found, error, key } = this.state;
    const isCurrent = found && key === this.key();
    return html`<aside class="passage" aria-label="Source" onKeyDown=${(event) => event.key === "Escape" && close()}>
      <div class="passage-head"><h2 tabindex="-1" ref=${this.heading}>Source ${citation.number}: ${visible(citation.document_title)}</h2>
        <button onClick=${close}>Close</button></div>
      <p class="count"><a href=${link("documents", (isCurrent && found.key) || citation.document_id, { start: citation.start, end: citation.end })}>Open the whole document</a>${pages(citation)}</p>
      ${error ? html`<${Problem} error=${error} />` : isCurrent
        ? html`<${MarkedText} text=${found.text} first=${found.start} mentions=${found.mentions} path=${citation.document_path}
          cited=${citation.start === null ? [] : [citation]} />`
        : html`<${Busy} />`}
    </aside>`;
  }
}
