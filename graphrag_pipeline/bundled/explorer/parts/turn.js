// One turn of a conversation: the question, its answer with numbered citations, the sources, and what was read for it.

import { post, session } from "../core/api.js";
import { link } from "../core/routes.js";
import { cutter, excerpt, pages, visible } from "../core/text.js";
import { Component, count, html, Icon, Problem } from "../core/ui.js";
import { Feedback } from "./feedback.js";
import { Markdown } from "./markdown.js";
import { Strategies } from "./strategies.js";
import { Used } from "./used.js";

const SAID_MS = 2000;
const MOST_QUOTED = 240;
const EXTRACTIVE = /^Extractive [^\n]*\(no model\)/; // such a first line says how the answer was made

export class Turn extends Component {
  state = { explained: null, error: null, said: "" };

  say(said) {
    this.setState({ said });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.setState({ said: "" }), SAID_MS);
  }

  componentWillUnmount() { clearTimeout(this.timer); }

  compare = async () => {
    this.setState({ explained: "busy", error: null });
    try {
      this.setState({ explained: await post("/explain", { ...this.props.body, method: "local" }) });
    } catch (error) { this.setState({ error, explained: null }); }
  };

  cite = (number) => {
    const found = this.props.turn.result.citations.find((one) => one.number === number);
    if (found) this.props.cite(found);
  };

  toSources = () => {
    const heading = document.querySelector(`#turn-${this.props.turn.number} .sources-head`);
    heading.scrollIntoView({ block: "start" });
    heading.focus({ preventScroll: true });
  };

  copyAnswer = async () => this.say((await copy(this.props.turn.answer)) ? "Answer copied" : "This browser forbids copying");
  copyLink = async () => this.say((await copy(addressOf(this.props.turn))) ? "Link copied" : "This browser forbids copying");

  render({ turn, source, strategies }, { explained, error, said }) {
    const { number, q, answer, result, context, state } = turn;
    const isBusy = state === "busy";
    return html`<article class="turn" id=${`turn-${number}`} aria-label=${`Question ${number}`} aria-busy=${isBusy}>
      <h2 class="asked">${visible(q)}</h2>
      ${isBusy && html`<p class="busy" role="status">${context ? "Writing the answer" : "Choosing what to read"} …</p>`}
      ${turn.error && html`<${Problem} error=${turn.error} />`}
      ${state === "stopped" && html`<p class="none">Stopped.</p>`}
      ${result?.citations.length > 0 && html`<p><button class="plain count" onClick=${this.toSources}>${count(result.citations.length, "passage")}, ${count(new Set(result.citations.map((one) => one.document_id)).size, "document")}</button></p>`}
      <section class=${EXTRACTIVE.test(answer) ? "answer extractive" : "answer"} aria-label="Answer"><${Markdown} text=${answer} cite=${result ? this.cite : null} base=${3} /></section>
      ${result && html`<div class="actions">
        <button onClick=${this.copyAnswer}><${Icon} path="M9 9h11v11H9zM15 9V4H4v11h5" />Copy</button>
        <button onClick=${this.copyLink}><${Icon} path="M10 14l4-4M8 11l-3 3a3.5 3.5 0 0 0 5 5l3-3M16 13l3-3a3.5 3.5 0 0 0-5-5l-3 3" />Link</button>
        <button onClick=${() => save([turn])}><${Icon} path="M12 4v11M7 11l5 5 5-5M5 20h14" />Markdown</button>
        <${Feedback} turn=${turn} />
        <span class="count" role="status">${said || facts(result)}</span></div>`}
      ${result?.citations.length > 0 && html`<${Sources} key=${result.snapshot} citations=${result.citations} units=${context?.text_units ?? []} cite=${this.props.cite} source=${source} />`}
      ${context && !isBusy && html`<details class="how"><summary>Used for this answer</summary>
        <${Used} context=${context} />
        ${result && html`<section aria-label="Strategies">${error && html`<${Problem} error=${error} />`}
          ${explained && explained !== "busy" ? html`<${Strategies} explained=${explained} names=${strategies} />`
            : html`<button onClick=${this.compare} disabled=${explained === "busy"}>Compare the seven strategies of local search</button>`}</section>`}
      </details>`}
    </article>`;
  }
}

function facts({ method, selection, seconds, citations, usage }) {
  const chosen = method === "auto" && selection.chosen ? `${selection.chosen} search, because ${selection.reason}` : `${method} search`;
  const cost = usage.calls ? ` · ${usage.calls} model calls${usage.cost ? `, $${usage.cost.toFixed(4)}` : ""}` : "";
  return visible(`${chosen} · ${count(citations.length, "source")} · ${seconds.toFixed(2)} s${cost}`);
}

/** The cited passages as cards, those of one document below its title and date. */
class Sources extends Component {
  render({ citations, units, cite, source }) {
    const documents = new Map(citations.map((one) => [one.document_id, one]));
    return html`<section aria-label="Sources"><h3 class="sources-head" tabindex="-1">Sources</h3>${[...documents].map(([id, { document_title: title, document_date: date }]) => html`
      <h4 class="source-head">${visible(title)} ${date && html`<time class="count">${visible(date)}</time>`}</h4>
      <ul class="sources">${citations.filter((one) => one.document_id === id).map((one) => html`<li>
        <button aria-pressed=${source === one} onClick=${() => cite(one)}>
          <span class="source-head"><b>${one.number}</b> ${sectionOf(one, units)}${pages(one)}</span> <q>${excerpt(one.quote, MOST_QUOTED)}</q></button></li>`)}</ul>`)}</section>`;
  }
}

/** Return the headings above a citation, as the text unit that was read has them; without the document's title. */
function sectionOf({ text_unit_id: id, document_title: title, start }, units) {
  const unit = units.find((one) => one.id === id && one.start !== null && one.start <= start);
  const inText = unit && start !== null ? [...cutter(unit.text)(0, start - unit.start).matchAll(/^(#{1,6})\s+(\S.*)$/gm)].map(([, marks, text]) => [marks.length, text]) : [];
  const path = [...(unit?.headings ?? []), ...inText].reduce((above, [level, text]) => [...above.filter(([other]) => other < level), [level, excerpt(text, 60)]], []);
  return path.map(([, text]) => text).filter((text) => !title.includes(text)).join(" › ");
}

function addressOf({ q, method, strategy, filter }) {
  return `${location.origin}${location.pathname}${link("ask", "", { q, method: method === "auto" ? "" : method, strategy, filter, index: session.root })}`;
}

/** A text of documents in a file of Markdown: it loads no picture, links nowhere and is no HTML in any viewer. */
const plain = (text) => visible(text).replaceAll("<", "&lt;").replaceAll("](", "]\\(");

/** Return a turn as Markdown: question, answer, sources with their places, and the snapshot that they are of. */
function toMarkdown(turn) {
  const place = (one) => (one.start === null ? "" : `, characters ${one.start} to ${one.end}`);
  const sources = turn.result.citations.map((one) => plain(`${one.number}. ${one.document_title} (${one.document_path}${pages(one)}${place(one)}): “${one.quote.replace(/\s+/g, " ")}”`));
  return [`# ${plain(turn.q)}`, plain(turn.answer), ...(sources.length ? ["## Sources", sources.join("\n")] : []),
    `Index \`${session.root}\`, snapshot \`${turn.result.snapshot}\`. ${addressOf(turn)}`, ""].join("\n\n");
}

/** Save turns that have an answer as one file of Markdown. */
export function save(turns) {
  const text = turns.filter((turn) => turn.result).map(toMarkdown).join("\n");
  const address = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  Object.assign(document.createElement("a"), { href: address, download: turns.length === 1 ? `answer-${turns[0].number}.md` : "conversation.md" }).click();
  URL.revokeObjectURL(address);
}

/** Copy a text; without HTTPS browsers offer the older way only. */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const field = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
}
