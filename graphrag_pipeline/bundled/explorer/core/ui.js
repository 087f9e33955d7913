// The building blocks of all pages: elements by htm and preact, loading, errors, pagers, chips.
// Text is only ever given to preact as a child or an attribute, so it stays text. Keep out: pages, requests.

import { Component, createRef, h, render } from "../vendor/preact.mjs";
import htm from "../vendor/htm.mjs";
import { visible } from "./text.js";

export const html = htm.bind(h);
export { Component, createRef, h, render };

/** Whether the screen is as narrow as a phone's, as in `explorer.css`. */
export const NARROW = matchMedia("(max-width: 640px)");

export function count(n, one, many) {
  return `${Number(n ?? 0).toLocaleString("en")} ${n === 1 ? one : many ?? `${one}s`}`;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined || value === "") return "–";
  return typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: digits }) : String(value);
}

export function Text({ of }) {
  return visible(of ?? "");
}

let isFirstTitle = true;

/** The heading of a page; it takes the focus when the page replaces another one, so that a reader begins there. */
export class Title extends Component {
  componentDidMount() {
    const { activeElement, body } = document;
    if (!isFirstTitle && (activeElement === body || activeElement.closest("header"))) {
      document.getElementById("title").focus({ preventScroll: true });
    }
    isFirstTitle = false;
  }

  render({ children }) { return html`<h1 id="title" tabindex="-1">${children}</h1>`; }
}

export function Problem({ error }) {
  return html`<div class="problem" role="alert">
    <strong>${visible(error.message || "The request failed.")}</strong> ${visible(error.whatToDo || "")}
  </div>`;
}

export function Busy({ what = "Loading" }) {
  return html`<p class="busy" role="status">${what} …</p>`;
}

export function Pager({ offset, limit, total, go }) {
  if (total <= limit && !offset) return html`<p class="count" role="status">${count(total, "row")}</p>`;
  const last = Math.min(offset + limit, total);
  return html`<nav class="pager" aria-label="Pages of the list">
    <button disabled=${offset === 0} onClick=${() => go(Math.max(0, offset - limit))}>Previous</button>
    <span role="status">${number(offset + 1)} to ${number(last)} of ${number(total)}</span>
    <button disabled=${last >= total} onClick=${() => go(offset + limit)}>Next</button>
  </nav>`;
}

const EMPTY = ["", "–", null, undefined, false];

/** A table that scrolls by itself on a narrow screen, without empty columns; `columns`: [heading, cell of a row, class]. */
export function Table({ columns, rows, label }) {
  const cells = rows.map((row) => columns.map(([, cell]) => cell(row)));
  const kept = columns.map((_, i) => i).filter((i) => cells.some((row) => !EMPTY.includes(row[i])));
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table class="records">
    <thead><tr>${kept.map((i) => html`<th scope="col" class=${columns[i][2] ?? ""}>${columns[i][0]}</th>`)}</tr></thead>
    <tbody>${cells.map((row) => html`<tr>${kept.map((i) => html`<td class=${columns[i][2] ?? ""} data-name=${columns[i][0]}>${row[i]}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** Facts in a row of figures: [value, name] pairs, without those that are empty. */
export function Figures({ of }) {
  return html`<ul class="figures">${of.filter(([value]) => !EMPTY.includes(value)).map(([value, name]) => html`<li><strong>${value}</strong> ${name}</li>`)}</ul>`;
}

/** An icon of 24 by 24 units as lines; what it means is said beside it. */
export function Icon({ path }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${path} /></svg>`;
}

/** A page that loads when it appears and again when `key` of its request changes; subclasses give `request` and `show`. */
export class Loaded extends Component {
  state = { found: null, error: null, key: null };

  componentDidMount() { this.load(); }
  componentDidUpdate() { if (this.key() !== this.state.key) this.load(); }
  componentWillUnmount() { this.isGone = true; }
  key() { return JSON.stringify(this.props.at ?? null); }

  async load() {
    const key = this.key();
    this.setState({ key, error: null });
    try {
      const found = await this.request(this.props);
      if (!this.isGone && key === this.key()) this.setState({ found, error: null });
    } catch (error) {
      if (!this.isGone) this.setState({ error });
    }
  }

  render() {
    const { found, error } = this.state;
    if (error) return html`<${Problem} error=${error} />`;
    return found ? this.show(found) : html`<${Busy} />`;
  }
}
