// The page Quality and cost: figures of evaluations over snapshots, and what models were paid.

import { get, RequestError } from "../core/api.js";
import { go } from "../core/routes.js";
import { visible } from "../core/text.js";
import { html, Loaded, number, Table, Title } from "../core/ui.js";

const GROUPS = { "": "run", day: "day", model: "model", stage: "stage", command: "command" };

export default class Quality extends Loaded {
  async request({ at: { params } }) {
    const [evaluations, costs] = await Promise.all([
      allowed(get("/evaluations", {}, { isFresh: true })), allowed(get("/costs", { by: params.by }, { isFresh: true })),
    ]);
    return { evaluations: evaluations?.evaluations, costs: costs?.costs };
  }

  show({ evaluations, costs }) {
    return html`<${Title}>Quality and cost</>
      <h2>Quality over snapshots</h2>
      ${!evaluations ? html`<p class="none">Your key does not show figures of the whole index.</p>` : evaluations.length
        ? html`<${Figures} evaluations=${evaluations} />` : html`<p class="none">No evaluation is stored. Run <code>graphrag-pipeline evaluate</code>.</p>`}
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

function Figures({ evaluations }) {
  const snapshots = [...new Set(evaluations.map((one) => one.snapshot))];
  const names = [...new Set(evaluations.map((one) => one.name))];
  return names.map((name) => {
    const found = evaluations.filter((one) => one.name === name);
    const figures = [...new Set(found.flatMap((one) => Object.keys(flatten(one.values))))];
    const columns = snapshots.filter((id) => found.some((one) => one.snapshot === id));
    return html`<h3>${visible(name)}</h3><${Table} label=${name} rows=${figures} columns=${[["Figure", (figure) => visible(figure.replaceAll("_", " "))],
      ...columns.map((id) => [html`<code>${id}</code>`, (figure) => number(flatten(found.find((one) => one.snapshot === id).values)[figure]), "number"])]} />`;
  });
}

/** Return the numbers of nested figures by their path; a list holds figures that have a name and a value. */
function flatten(values, path = "") {
  if (Array.isArray(values)) return Object.fromEntries(values.filter((one) => typeof one?.value === "number").map((one) => [one.name, one.value]));
  return Object.entries(values ?? {}).reduce((found, [key, value]) => {
    const name = path ? `${path} · ${key}` : key;
    if (value !== null && typeof value === "object") return { ...found, ...flatten(value, name) };
    return typeof value === "number" ? { ...found, [name]: value } : found;
  }, {});
}

function Costs({ costs, by }) {
  const rows = by ? costs.groups : [...costs.runs].reverse().slice(0, 100);
  return html`<p>Paid: ${money(costs.total.cost)} for ${number(costs.total.n_calls)} calls.
      Budget used: ${money(costs.spent_cost)}${costs.max_cost === null ? ", without a limit" : ` of ${money(costs.max_cost)}`}; ${number(costs.spent_tokens)} tokens${costs.max_tokens === null ? "" : ` of ${number(costs.max_tokens)}`}.</p>
    <form class="search"><label>By <select onChange=${(event) => go("quality", "", { by: event.target.value })}>${Object.entries(GROUPS).map(([key, name]) =>
      html`<option value=${key} selected=${key === by}>${name}</option>`)}</select></label></form>
    ${rows.length ? html`<${Table} label="Cost" rows=${rows} columns=${[
      [by || "run", (one) => visible(by ? one.name : `${one.command} ${one.about}`)],
      ...(by ? [] : [["Begun (UTC)", (one) => one.begun.slice(0, 19).replace("T", " ")], ["Status", (one) => one.status]]),
      ["Calls", (one) => number(one.n_calls), "number"], ["Without a price", (one) => number(one.n_unpriced), "number"], ["Cost", (one) => money(one.cost), "number"]]} />`
      : html`<p class="none">No paid call is recorded.</p>`}`;
}

function money(value) {
  return `$${Number(value ?? 0).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 4 })}`;
}
