// What each strategy of local search took and left: one row per text unit, one column per strategy.

import { link } from "../core/routes.js";
import { visible } from "../core/text.js";
import { html, number } from "../core/ui.js";

export function Strategies({ explained, names }) {
  const shown = [...new Set([...explained.strategies, ...names])];
  const units = new Map();
  for (const pick of explained.picks) {
    if (!units.has(pick.text_unit)) units.set(pick.text_unit, { ...pick, by: new Map() });
    units.get(pick.text_unit).by.set(pick.strategy, pick);
  }
  const rows = [...units.values()].sort((a, b) => b.by.size - a.by.size || a.text_unit - b.text_unit);
  const totals = shown.map((name) => rows.reduce((sum, row) => sum + (row.by.get(name)?.n_tokens ?? 0), 0));
  return html`<h2>The strategies side by side</h2>
    <p>A number is the place at which a strategy took the text unit; “left” means that it did not take it.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Strategies side by side"><table class="strategies">
      <thead><tr><th scope="col">Text unit</th>${shown.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr><th scope="row"><a href=${link("documents", "", { unit: row.text_unit })}>${row.text_unit}</a> ${visible(row.document)}</th>
        ${shown.map((name) => Cell(row.by.get(name)))}</tr>`)}</tbody>
      <tfoot><tr><th scope="row">Tokens taken</th>${totals.map((total) => html`<td class="number">${number(total)}</td>`)}</tr></tfoot>
    </table></div>`;
}

function Cell(pick) {
  if (!pick) return html`<td class="left">left</td>`;
  const about = `${pick.n_tokens} tokens${pick.entities.length ? ` for ${pick.entities.join(", ")}` : ""}`;
  return html`<td class="taken" title=${visible(about)}><strong>${pick.place}</strong>${pick.is_excerpt ? " excerpt" : ""}</td>`;
}
