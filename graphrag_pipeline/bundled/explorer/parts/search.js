// The form above a list: a search, an order, and further choices; it changes the address, so that a list can be linked.

import { go } from "../core/routes.js";
import { visible } from "../core/text.js";
import { html } from "../core/ui.js";

/** `choices`: {parameter: [label, [value, text] pairs]}; `hidden`: parameters that stay. */
export function Search({ page, params, sorts, label, choices = {}, hidden = {} }) {
  const change = (form) => go(page, "", Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()])));
  const submit = (event) => { event.preventDefault(); change(event.target); };
  const pick = (event) => change(event.target.form);
  return html`<form class="search" role="search" onSubmit=${submit} key=${JSON.stringify(params)}>
    ${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name=${name} value=${value} />`)}
    <label>${label} <input name="search" type="search" defaultValue=${params.search ?? ""} /></label>
    ${Object.entries(choices).map(([name, [text, values]]) => html`<label>${text} <select name=${name} onChange=${pick}>
      ${values.map(([value, shown]) => html`<option value=${value} selected=${String(value) === String(params[name] ?? "")}>${visible(shown)}</option>`)}</select></label>`)}
    <label>Order <select name="sort" onChange=${pick}>${Object.entries(sorts).map(([value, shown]) =>
      html`<option value=${value} selected=${value === params.sort}>${shown}</option>`)}</select></label>
    <button>Search</button>
  </form>`;
}
