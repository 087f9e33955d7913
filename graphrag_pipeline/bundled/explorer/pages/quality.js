// The page Quality and cost: figures of an index with their thresholds in words, evaluations, and what models were paid.

import { get, RequestError } from "../core/api.js";
import { link } from "../core/routes.js";
import { visible } from "../core/text.js";
import { count, Figures, html, Loaded, number, Table, Title } from "../core/ui.js";
import { Bar, Line } from "../parts/charts.js";

const GROUPS = { "": "Runs", day: "Days", model: "Models", stage: "Stages", command: "Commands" };
const WORDS = { good: "good", watch: "look at it", bad: "bad" };
const MEASURES = {
  recall: "Recall of evidence", all_evidence: "Questions with all evidence", contained: "Answer contains the reference", in_first: "Right in the first statement",
  in_three: "Right in three statements", declined_rightly: "Declined rightly", declined_wrongly: "Declined wrongly (less is better)", f1: "Token F1", covered_claims: "Covered claims", faithfulness: "Faithfulness",
};

export default class Quality extends Loaded {
  async request({ at: { params } }) {
    const [figures, costs] = await Promise.all([
      allowed(get("/evaluations", {}, { isFresh: true })), allowed(get("/costs", { by: params.by }, { isFresh: true })),
    ]);
    return { figures, costs: costs?.costs };
  }

  show({ figures, costs }) {
    const named = (name) => figures.evaluations.filter((one) => one.name.startsWith(`${name}-`)).reverse(); // the oldest snapshot first
    return html`<${Title}>Quality and cost</>
      ${!figures ? html`<p class="none">Your key does not show figures of the whole index.</p>` : html`
        <${IndexQuality} evaluations=${named("quality")} guides=${figures.guides} />
        ${named("retrieval").length > 0 && html`<${Gold} title="Retrieval quality" evaluations=${named("retrieval")} measure=${retrieval} />`}
        <${Gold} title="Answer quality" evaluations=${named("answers")} measure=${answers} />`}
      <h2>Cost</h2>
      ${costs ? html`<${Costs} costs=${costs} by=${this.props.at.params.by ?? ""} />` : html`<p class="none">Your key does not show costs.</p>`}`;
  }
}

async function allowed(request) {
  try { return await request; } catch (error) {
    if (error instanceof RequestError && error.status === 404) return null;
    throw error;
  }
}

const percent = (value) => `${number(100 * value, 1)} %`;

/** Return "good", "watch" or "bad": beyond the threshold, and beyond half of it or its double. */
function judge(value, { threshold, is_minimum: isMinimum }) {
  if (threshold === null || (isMinimum ? value >= threshold : value <= threshold)) return "good";
  return (isMinimum ? value < threshold / 2 : value > 2 * threshold) ? "bad" : "watch";
}

function IndexQuality({ evaluations, guides }) {
  if (!evaluations.length) return html`<h2>Index checks: not measured yet</h2><p class="none">Run <code>graphrag-pipeline evaluate --index</code>.</p>`;
  const last = evaluations[evaluations.length - 1];
  const valueIn = (one, name) => one.values.figures.find((figure) => figure.name === name)?.value;
  const figures = last.values.figures.filter((one) => one.value !== null).map((one) => {
    const guide = guides.find((found) => found.name === one.name);
    const values = evaluations.filter((each) => each.name === last.name).map((each) => valueIn(each, one.name)).filter((value) => typeof value === "number");
    return { ...one, guide, values, state: judge(one.value, guide) };
  });
  const [good, beyond] = [true, false].map((is) => figures.filter((one) => (one.state === "good") === is));
  const worst = beyond.some((one) => one.state === "bad") ? "bad" : "watch";
  return html`<h2>Index checks: ${beyond.length ? html`${good.length} of ${figures.length} good <span class=${`pill ${worst}`}>${WORDS[worst]}</span>` : `all ${figures.length} good`}</h2>
    <p class="count">They measure the graph and its texts, not the answers.${beyond.length > 0 && html` Bad means below half, or above double, of a threshold (<code>quality.thresholds</code>).`} Snapshot <code>${last.snapshot.slice(0, 8)}</code>.</p>
    <ul class="quality">${beyond.map((one) => html`<${Figure} of=${one} />`)}</ul>
    ${good.length > 0 && html`<details open=${!beyond.length}><summary>${count(good.length, "good figure")}</summary><ul class="quality">${good.map((one) => html`<${Figure} of=${one} />`)}</ul></details>`}`;
}

function Figure({ of: { name, value, note, examples, values, state, guide } }) {
  const isShare = guide.meaning.startsWith("share");
  const shown = (one) => (isShare ? percent(one) : number(one, 2));
  const limit = guide.threshold === null ? "no threshold" : `${guide.is_minimum ? "at least" : "at most"} ${shown(guide.threshold)}`;
  const label = `Over snapshots: ${values.map(shown).join(", ")}; ${limit}`;
  return html`<li><div><h3>${name.replaceAll("_", " ")} <span class=${`pill ${state}`}>${WORDS[state]}</span></h3>
      <p class="count">${guide.meaning}</p>
      <p class="count">${visible(note)}</p></div>
    <${Line} values=${values} threshold=${guide.threshold} label=${label} />
    <p class="value"><strong>${shown(value)}</strong><span class="count">${limit}</span></p>
    ${state !== "good" && html`<div class="advice"><p>${visible(guide.advice)}</p>${examples.length > 0 && html`<p class="count">${visible(guide.listed)}: ${visible(examples.join(", "))}</p>`}</div>`}</li>`;
}

const mean = (values) => { const found = values.filter((one) => typeof one === "number"); return found.length ? found.reduce((sum, one) => sum + one, 0) / found.length : null; };
const retrieval = (figure) => ({ recall: mean(figure.recalls), all_evidence: mean(figure.recalls.map((one) => Number(one === 1))) });
const answers = (figure) => Object.fromEntries(Object.keys(MEASURES).slice(2).map((name) => [name, mean(figure.answers.map((one) => one[name]))]));

/** Bars of each measure by method, of the newest snapshot with figures. */
function Gold({ title, evaluations, measure }) {
  if (!evaluations.length) return html`<h2>${title}: not measured yet</h2><p class="none">Run <code>graphrag-pipeline evaluate questions.jsonl</code> with questions whose answers are known.</p>`;
  const last = evaluations[evaluations.length - 1];
  const methods = last.values.figures.map((one) => ({ name: one.method, n: (one.recalls ?? one.answers).length, values: measure(one) }));
  const names = Object.keys(MEASURES).filter((name) => methods.some((one) => typeof one.values[name] === "number"));
  return html`<h2>${title}: ${count(methods[0]?.n, "question")} measured</h2><p class="count">Snapshot <code>${last.snapshot.slice(0, 8)}</code></p>
    <div class="bars">${names.map((name) => html`<section><h3>${MEASURES[name]}</h3><ul>${methods.filter((one) => typeof one.values[name] === "number").map((one) => html`<li>
      <span>${visible(one.name)}</span><${Bar} share=${one.values[name]} /><span class="number">${percent(one.values[name])}</span></li>`)}</ul></section>`)}</div>`;
}

function Costs({ costs, by }) {
  const rows = by ? costs.groups : [...costs.runs].reverse().slice(0, 100);
  const most = Math.max(...rows.map((one) => one.cost), 0);
  const share = costs.max_cost ? costs.spent_cost / costs.max_cost : null;
  const state = share === null || share < 0.8 ? "good" : share < 1 ? "watch" : "bad";
  if (!costs.runs.length && !costs.spent_tokens) return html`<p class="none">${money(0)} paid: no model was called.${share === null && html` No limit is set (<code>budget.max_cost</code>).`}</p>`;
  return html`<${Figures} of=${[[money(costs.total.cost), "paid"], [number(costs.total.n_calls), "calls"], [number(costs.spent_tokens), `tokens of the budget${costs.max_tokens === null ? "" : ` of ${number(costs.max_tokens)}`}`]]} />
    ${share === null ? html`<p class="count">No limit is set (<code>budget.max_cost</code>). Budget used: ${money(costs.spent_cost)}.</p>`
      : html`<p><span class=${`pill ${state}`}>${WORDS[state]}</span> ${money(costs.spent_cost)} of ${money(costs.max_cost)} is used (${percent(share)}).</p><${Bar} share=${share} />`}
    ${costs.unpriced.length > 0 && html`<p class="count">Without a known price, and counted as 0: ${visible(costs.unpriced.join(", "))}.</p>`}
    ${costs.runs.length > 0 ? html`<nav class="tabs" aria-label="Sum by">${Object.entries(GROUPS).map(([key, name]) =>
        html`<a href=${link("quality", "", { by: key })} aria-current=${key === by ? "true" : undefined}>${name}</a>`)}</nav>
      <${Table} label="Cost" rows=${rows} columns=${[
        [GROUPS[by].replace(/s$/, ""), (one) => visible(by ? one.name : `${one.command} ${one.about}`)],
        ["Begun (UTC)", (one) => (by ? "" : one.begun.slice(0, 16).replace("T", " "))], ["Status", (one) => (by ? "" : one.status)],
        ["", (one) => (most ? html`<${Bar} share=${one.cost / most} />` : "")],
        ["Calls", (one) => number(one.n_calls), "number"], ["Without a price", (one) => (one.n_unpriced ? number(one.n_unpriced) : ""), "number"], ["Cost", (one) => money(one.cost), "number"]]} />`
      : html`<p class="none">No paid call is recorded.</p>`}`;
}

function money(value) {
  return `$${Number(value ?? 0).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 4 })}`;
}
