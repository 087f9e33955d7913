// The page Ask: a question, its streamed answer, the document of a citation beside it, and what was used.

import { post, stream } from "../core/api.js";
import { go } from "../core/routes.js";
import { pages, visible } from "../core/text.js";
import { Component, html, Problem, Title } from "../core/ui.js";
import { Markdown } from "../parts/markdown.js";
import { Passage } from "../parts/passage.js";
import { Strategies } from "../parts/strategies.js";
import { Used } from "../parts/used.js";

const METHODS = ["local", "global", "basic", "drift", "lazy", "auto"];
const STRATEGIES = ["balanced", "graph", "depth_first", "per_entity_cap", "round_robin", "weighted_quota", "minimum_guarantee"];
const MOST_TURNS = 10;

export default class Ask extends Component {
  state = { turns: [], answer: "", result: null, context: null, isBusy: false, error: null, source: null, followUps: [], explained: null };

  componentDidMount() {
    if (this.props.at.params.q) this.ask();
    else this.suggest([]);
  }

  componentDidUpdate(before) {
    const { q, method, strategy, filter } = this.props.at.params;
    const old = before.at.params;
    if (q && (q !== old.q || method !== old.method || strategy !== old.strategy || filter !== old.filter)) this.ask();
  }

  componentWillUnmount() { this.stop(); }

  stop = () => { this.aborter?.abort(); };

  body(more = {}) {
    const { q, method = "local", strategy, filter = "" } = this.props.at.params;
    const filters = filter.split(";").map((one) => one.trim()).filter(Boolean);
    return { question: q, method, filters, ...(strategy && method === "local" ? { strategy } : {}), ...more };
  }

  async ask() {
    this.stop();
    const aborter = (this.aborter = new AbortController());
    const { q, method = "local" } = this.props.at.params;
    const { turns } = this.state;
    const history = method === "local" || method === "auto" ? turns.slice(-MOST_TURNS) : [];
    this.setState({ answer: "", result: null, context: null, isBusy: true, error: null, source: null, followUps: [], explained: null });
    try {
      await stream("/search/stream", this.body(history.length ? { history } : {}), (name, data) => this.take(name, data), aborter.signal);
      const answer = this.state.result?.answer ?? this.state.answer;
      const all = [...turns, { role: "user", content: q }, { role: "assistant", content: answer }];
      this.setState({ isBusy: false, turns: all });
      await this.suggest(all);
    } catch (error) {
      if (error.name !== "AbortError") this.setState({ isBusy: false, error });
    }
  }

  take(name, data) {
    if (name === "token") this.setState((old) => ({ answer: old.answer + data.text }));
    if (name === "context") this.setState({ context: data.context });
    if (name === "result") this.setState({ result: data, context: data.context });
  }

  async suggest(turns) {
    try {
      const last = turns.length ? { question: this.props.at.params.q, history: turns.slice(-MOST_TURNS) } : {};
      const found = await post("/follow-ups", { ...last, n: 4 });
      this.setState({ followUps: found.questions.map((one) => one.question) });
    } catch { this.setState({ followUps: [] }); }
  }

  compare = async () => {
    this.setState({ explained: "busy" });
    try {
      this.setState({ explained: await post("/explain", this.body({ method: "local" })) });
    } catch (error) { this.setState({ error, explained: null }); }
  };

  submit = (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    const question = values.q.trim();
    if (!question) return;
    if (question === this.props.at.params.q) this.ask();
    go("ask", "", { q: question, method: values.method, strategy: values.method === "local" ? values.strategy : "", filter: values.filter });
  };

  forget = () => { this.stop(); this.setState({ turns: [], answer: "", result: null, context: null, source: null, explained: null, isBusy: false }); go("ask"); };

  cite = (number) => {
    const found = this.state.result?.citations.find((one) => one.number === number);
    if (!found) return;
    if (!document.activeElement.closest(".passage")) this.openedBy = document.activeElement;
    this.setState({ source: found });
  };

  /** Close the passage; the focus returns to the button that opened it. */
  close = () => this.setState({ source: null }, () => (this.openedBy?.isConnected ? this.openedBy : document.getElementById("title"))?.focus());

  again = (question) => { const { method, strategy, filter } = this.props.at.params; go("ask", "", { q: question, method, strategy, filter }); };

  render() {
    const { turns, answer, result, context, isBusy, error, source, followUps, explained } = this.state;
    const { q = "" } = this.props.at.params;
    const earlier = turns.length > 2 || (isBusy && turns.length) ? turns.slice(0, isBusy ? undefined : -2) : [];
    return html`<${Title}>Ask</>
      ${earlier.length > 0 && html`<details class="earlier"><summary>Earlier in this conversation</summary>
        ${earlier.map((turn) => html`<p class=${turn.role}><strong>${turn.role === "user" ? "You" : "Answer"}:</strong> ${visible(turn.content)}</p>`)}</details>`}
      <${Question} at=${this.props.at} submit=${this.submit} isBusy=${isBusy} stop=${this.stop} forget=${turns.length ? this.forget : null} />
      ${error && html`<${Problem} error=${error} />`}
      <div class=${source ? "beside" : ""}>
        <div>
          ${(q && (answer || result || isBusy)) && html`<section aria-label="Answer" class="answer" aria-busy=${isBusy}>
            <h2>${visible(q)}</h2>
            ${isBusy && !answer && html`<p class="busy" role="status">${context ? "Writing the answer" : "Choosing the context"} …</p>`}
            <${Markdown} text=${result?.answer ?? answer} cite=${result ? this.cite : null} base=${3} />
            ${result && html`<p class="facts" role="status">${result.method} search, ${result.seconds.toFixed(2)} s, ${result.citations.length} sources${result.usage.calls ? `, ${result.usage.calls} model calls` : ""}</p>`}
          </section>`}
          ${result?.citations.length > 0 && html`<${Sources} citations=${result.citations} open=${this.cite} source=${source} />`}
          ${followUps.length > 0 && !isBusy && html`<section aria-label="Questions to ask next"><h2>${q ? "Ask next" : "Begin with"}</h2>
            <ul class="follow-ups">${followUps.map((one) => html`<li><button class="plain" onClick=${() => this.again(one)}>${visible(one)}</button></li>`)}</ul></section>`}
          ${context && !isBusy && html`<${Used} context=${context} />`}
          ${result && html`<section aria-label="Strategies">
            ${explained && explained !== "busy" ? html`<${Strategies} explained=${explained} names=${STRATEGIES} />`
              : html`<button onClick=${this.compare} disabled=${explained === "busy"}>Compare the seven strategies of local search</button>`}</section>`}
        </div>
        ${source && html`<${Passage} citation=${source} close=${this.close} />`}
      </div>`;
  }
}

function Question({ at, submit, isBusy, stop, forget }) {
  const { q = "", method = "local", strategy = "balanced", filter = "" } = at.params;
  return html`<form class="question" onSubmit=${submit} key=${JSON.stringify(at.params)}>
    <label class="wide">Question
      <textarea name="q" rows="2" required defaultValue=${q} onKeyDown=${(event) => {
        if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); event.target.form.requestSubmit(); }
      }}></textarea></label>
    <label>Method <select name="method" defaultValue=${method}>${METHODS.map((one) => html`<option selected=${one === method}>${one}</option>`)}</select></label>
    <label>Strategy <select name="strategy">${STRATEGIES.map((one) => html`<option selected=${one === strategy}>${one}</option>`)}</select></label>
    <label>Filters <input name="filter" defaultValue=${filter} placeholder="year>=2024; source=reuters" /></label>
    <div class="buttons"><button class="main">Ask</button>
      ${isBusy && html`<button type="button" onClick=${stop}>Stop</button>`}
      ${forget && html`<button type="button" onClick=${forget}>New conversation</button>`}</div>
  </form>`;
}

function Sources({ citations, open, source }) {
  return html`<section aria-label="Sources"><h2>Sources</h2><ol class="sources">${citations.map((one) => html`<li value=${one.number}>
    <button class="plain" aria-pressed=${source?.number === one.number} onClick=${() => open(one.number)}>
      <strong>${visible(one.document_title)}</strong>${pages(one)}${one.start === null ? "" : ` ${one.start}–${one.end}`}: <q>${visible(one.quote)}</q></button></li>`)}</ol></section>`;
}
