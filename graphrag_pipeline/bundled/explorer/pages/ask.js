// The page Ask: a conversation as a thread of questions, streamed answers and their sources, with a document beside it.

import { get, post, session, stream } from "../core/api.js";
import { go, link } from "../core/routes.js";
import { visible } from "../core/text.js";
import { Component, count, html, Icon, Title } from "../core/ui.js";
import { Passage } from "../parts/passage.js";
import { save, Turn } from "../parts/turn.js";

const METHODS = {
  auto: "Automatic: fits the question", local: "Local: about named things", global: "Global: about the whole index",
  basic: "Basic: nearest passages", drift: "Drift: local, then further questions", lazy: "Lazy: rates passages on demand",
};
const STRATEGIES = ["balanced", "graph", "depth_first", "per_entity_cap", "round_robin", "weighted_quota", "minimum_guarantee"];
const MOST_HEARD = 10; // turns of the conversation that a search reads
const WITH_HISTORY = ["auto", "local"];

/** The conversation stays while other pages of the same index are read; a reload begins a new one. */
const kept = { of: "", turns: [] };
const optionsOf = ({ method, strategy, filter }) => ({ method: METHODS[method] ? method : "auto", strategy: strategy ?? "", filter: filter ?? "" });
const asked = ({ q, method, strategy, filter }) => JSON.stringify([q, method, strategy, filter]);

export default class Ask extends Component {
  constructor(props) {
    super(props);
    const of = `${session.root} ${session.key}`;
    if (kept.of !== of) Object.assign(kept, { of, turns: [] });
    this.state = { turns: kept.turns, source: null, followUps: [] };
  }

  componentDidMount() { this.follow(); }
  componentDidUpdate(before) { if (before.at !== this.props.at) this.follow(); }
  componentWillUnmount() { this.stop(); this.isGone = true; }

  stop = () => { this.aborter?.abort(); };

  /** Ask the question of the address, or show the turn that asked it. */
  follow() {
    const { q } = this.props.at.params;
    const known = q && kept.turns.find((turn) => asked(turn) === asked({ q, ...optionsOf(this.props.at.params) }));
    if (known) this.lookAt(known);
    if (q && !known) this.ask();
    else if (!this.state.followUps.length) this.suggest();
  }

  lookAt(turn) { requestAnimationFrame(() => document.getElementById(`turn-${turn.number}`)?.scrollIntoView({ block: "start" })); }

  keep(turns) {
    kept.turns = turns;
    if (!this.isGone) this.setState({ turns });
  }

  change(number, values) { this.keep(kept.turns.map((turn) => (turn.number === number ? { ...turn, ...values } : turn))); }

  async ask() {
    this.stop();
    const aborter = (this.aborter = new AbortController());
    const { q } = this.props.at.params;
    const number = (kept.turns[kept.turns.length - 1]?.number ?? 0) + 1;
    const turn = { number, q, ...optionsOf(this.props.at.params), answer: "", result: null, context: null, state: "busy", error: null };
    const body = bodyOf(turn, kept.turns);
    this.keep([...kept.turns, turn]);
    this.setState({ source: null, followUps: [] });
    if (number > 1) this.lookAt(turn);
    const take = (name, data) => {
      if (name === "token") this.change(number, { answer: kept.turns.find((one) => one.number === number).answer + data.text });
      if (name === "context") this.change(number, { context: data.context });
      if (name === "result") this.change(number, { result: data, context: data.context, answer: data.answer });
    };
    try {
      await stream("/search/stream", body, take, aborter.signal);
      this.change(number, { state: "done" });
      await this.suggest();
    } catch (error) {
      const isStopped = error.name === "AbortError";
      this.change(number, { state: isStopped ? "stopped" : "failed", error: isStopped ? null : error });
    }
  }

  async suggest() {
    const last = kept.turns[kept.turns.length - 1];
    const body = last ? { question: last.q, history: historyOf(kept.turns), n: 4 } : { n: 3 };
    const { questions } = await post("/follow-ups", body).catch(() => ({ questions: [] }));
    if (last === kept.turns[kept.turns.length - 1] || last?.number === kept.turns.length) this.setState({ followUps: questions.map((one) => one.question) });
  }

  submit = (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    this.askNext(values.q.trim(), { method: values.method, strategy: values.method === "local" ? values.strategy : "", filter: values.filter.trim() });
    event.target.q.value = "";
  };

  askNext(q, options) {
    if (!q) return;
    const params = { q, ...options, method: options.method === "auto" ? "" : options.method };
    if (link("ask", "", params) === location.hash) this.ask();
    else go("ask", "", params);
  }

  forget = () => {
    this.stop();
    this.keep([]);
    this.setState({ source: null, followUps: [] });
    if (this.props.at.params.q) go("ask"); else this.suggest();
  };

  cite = (citation) => {
    if (!document.activeElement.closest(".passage")) this.openedBy = document.activeElement;
    this.setState({ source: citation });
  };

  /** Close the passage; the focus returns to the button that opened it. */
  close = () => this.setState({ source: null }, () => (this.openedBy?.isConnected ? this.openedBy : document.getElementById("title"))?.focus());

  render() {
    const { turns, source, followUps } = this.state;
    const options = optionsOf(turns.length ? turns[turns.length - 1] : this.props.at.params);
    const isBusy = turns.some((turn) => turn.state === "busy");
    const composer = html`<${Composer} options=${options} submit=${this.submit} isBusy=${isBusy} stop=${this.stop} isFirst=${!turns.length} />`;
    const questions = followUps.length > 0 && !isBusy && html`<section class="examples" aria-label=${turns.length ? "Questions to ask next" : "Examples from this index"}>
      <h2>${turns.length ? "Ask next" : "Examples from this index"}</h2>
      <ul class="follow-ups">${followUps.map((one) => html`<li><button onClick=${() => this.askNext(one, options)}><${Icon} path="M6 4v8h12M14 8l4 4-4 4" />${visible(one)}</button></li>`)}</ul></section>`;
    if (!turns.length) {
      return html`<div class="hero"><${Title}>What do you want to know?</><p class="lead">Answers come from the documents of <strong>${visible(session.root)}</strong>, with a source for each statement.</p>${composer}${questions}<${Inside} /></div>`;
    }
    return html`<div class=${source ? "conversation beside" : "conversation"}>
      <div class="thread">
        <div class="page-head"><${Title}>Conversation</><p class="buttons"><button onClick=${() => save(turns)}>Save all</button><button class="new" onClick=${this.forget}>New conversation</button></p></div>
        ${turns.map((turn, i) => html`<${Turn} key=${turn.number} turn=${turn} cite=${this.cite} source=${source} strategies=${STRATEGIES} body=${bodyOf(turn, turns.slice(0, i))} />`)}
        ${questions}
        ${composer}
      </div>
      ${source && html`<${Passage} citation=${source} close=${this.close} />`}
    </div>`;
  }
}

/** What the index holds, in one line. */
class Inside extends Component {
  async componentDidMount() {
    const found = await Promise.all([get("/facets"), get("/documents", { sort: "date", limit: 1 })]).catch(() => null);
    if (found) this.setState({ counts: found[0].facets.counts, newest: Date.parse(found[1].documents[0]?.creation_date) });
  }

  render(_, { counts, newest }) {
    const day = newest && new Date(newest).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
    return counts && html`<p class="count"><a href=${link("documents")}>${count(counts.documents, "document")}</a>, <a href=${link("entities")}>${count(counts.entities, "entity", "entities")}</a>${day && `, newest ${day}`}</p>`;
  }
}

function historyOf(turns) {
  return turns.filter((turn) => turn.answer).flatMap(({ q, answer }) => [{ role: "user", content: q }, { role: "assistant", content: answer }]).slice(-MOST_HEARD);
}

function bodyOf({ q, method, strategy, filter }, before) {
  const history = WITH_HISTORY.includes(method) ? historyOf(before) : [];
  const filters = filter.split(";").map((one) => one.trim()).filter(Boolean);
  return { question: q, method, filters, ...(strategy && method === "local" ? { strategy } : {}), ...(history.length ? { history } : {}) };
}

class Composer extends Component {
  componentWillMount() { this.setState({ method: this.props.options.method }); }

  render({ options, submit, isBusy, stop, isFirst }, { method }) {
    return html`<form class="composer" onSubmit=${submit} aria-label="Ask">
      <div class="box">
        <textarea name="q" rows=${isFirst ? 3 : 1} required aria-label="Question" placeholder=${isFirst ? "Ask about people, places, events or themes" : "Ask a further question"} onKeyDown=${(event) => {
          if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); event.target.form.requestSubmit(); }
        }}></textarea>
        ${isBusy ? html`<button type="button" class="main round" aria-label="Stop" title="Stop" onClick=${stop}><${Icon} path="M8 8h8v8H8z" /></button>`
          : html`<button class="main round" aria-label="Ask" title="Ask"><${Icon} path="M12 19V6M6 11l6-6 6 6" /></button>`}
      </div>
      <details class="advanced"><summary>Advanced</summary><div class="choices">
        <label>Method <select name="method" onChange=${(event) => this.setState({ method: event.target.value })}>${Object.entries(METHODS).map(([name, about]) =>
          html`<option value=${name} selected=${name === method}>${about}</option>`)}</select></label>
        <label hidden=${method !== "local"}>Strategy <select name="strategy">${STRATEGIES.map((one) => html`<option selected=${one === (options.strategy || "balanced")}>${one}</option>`)}</select></label>
        <label>Filters <input name="filter" defaultValue=${options.filter} placeholder="year>=2024; source=reuters" /></label>
      </div></details>
    </form>`;
  }
}
