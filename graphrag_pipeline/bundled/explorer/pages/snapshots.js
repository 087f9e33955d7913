// The page Snapshots: the list, and what changed from one to another and why.

import { get } from "../core/api.js";
import { go, link } from "../core/routes.js";
import { visible } from "../core/text.js";
import { count, html, Loaded, number, Table, Title } from "../core/ui.js";

const MOST = 200;

export default class Snapshots extends Loaded {
  async request({ at: { params } }) {
    const { snapshots } = await get("/snapshots", {}, { isFresh: true });
    const to = params.to ?? snapshots.find((one) => one.is_published)?.id ?? snapshots[0]?.id;
    const from = params.from ?? snapshots[snapshots.findIndex((one) => one.id === to) + 1]?.id;
    const compared = from && to && from !== to ? (await get("/snapshots/diff", { from, to })).diff : null;
    return { snapshots, from, to, diff: compared };
  }

  show({ snapshots, from, to, diff }) {
    const pick = (event) => go("snapshots", "", Object.fromEntries(new FormData(event.target.form)));
    const choice = (name, chosen, text) => html`<label>${text} <select name=${name} onChange=${pick}>${snapshots.map((one) =>
      html`<option value=${one.id} selected=${one.id === chosen}>${one.id} (${one.created.slice(0, 16).replace("T", " ")})</option>`)}</select></label>`;
    return html`<${Title}>Snapshots</>
      <${Table} label="Snapshots" rows=${snapshots} columns=${[
        ["Snapshot", (one) => html`<code>${one.id}</code>`], ["Created (UTC)", (one) => one.created.slice(0, 19).replace("T", " ")],
        ["Status", (one) => status(one)], ["Documents", (one) => number(one.rows.documents), "number"],
        ["Entities", (one) => number(one.rows.entities), "number"], ["Relationships", (one) => number(one.rows.relationships), "number"],
        ["Reports", (one) => number(one.rows.community_reports), "number"]]} />
      ${snapshots.length > 1 && html`<form class="search">${choice("from", from, "From")} ${choice("to", to, "to")}</form>`}
      ${diff ? html`<${Diff} diff=${diff} />` : html`<p class="none">${snapshots.length > 1 ? "Choose two different snapshots." : "There is one snapshot, so nothing to compare."}</p>`}`;
  }
}

function status(one) {
  const words = [one.is_published && "published", one.is_pinned && "pinned", one.is_imported && "imported", one.is_waiting && "waiting",
    one.is_read && "read now", one.refusal && `refused: ${one.refusal}`];
  return visible(words.filter(Boolean).join(", ") || "kept");
}

function Diff({ diff }) {
  const changed = Object.entries(diff.rows).filter(([, [old, now]]) => old !== now);
  return html`<h2>From ${diff.old} to ${diff.new}</h2>
    ${changed.length ? html`<${Table} label="Rows" rows=${changed} columns=${[["Table", ([name]) => name.replaceAll("_", " ")],
      ["Before", ([, [old]]) => number(old), "number"], ["After", ([, [, now]]) => number(now), "number"],
      ["Change", ([, [old, now]]) => `${now > old ? "+" : "−"}${number(Math.abs(now - old))}`, "number"]]} />` : html`<p>No table has another number of rows.</p>`}
    <${Changes} name="Documents" rows=${diff.documents} show=${(one) => html`<strong>${one.change}</strong> ${visible(one.path)}${one.record && ` # ${visible(one.record)}`}`} />
    <${Changes} name="Entities" rows=${diff.entities} show=${(one) => html`<strong>${one.change}</strong> ${one.change === "removed" || one.into ? visible(one.title) : html`<a href=${link("entities", one.number)}>${visible(one.title)}</a>`}
      ${one.into && ` into ${visible(one.into)} by ${visible(one.rule)}`}${because(one.documents)}`} />
    <${Changes} name="Reports" rows=${diff.reports} show=${(one) => html`<strong>${one.change}</strong> ${one.change === "removed" ? visible(one.title) : html`<a href=${link("communities", one.community)}>${visible(one.title)}</a>`}, level ${one.level}${because(one.documents)}`} />
    <${Changes} name="Stages" rows=${diff.stages} show=${(one) => html`<strong>${one.stage}</strong>: ${visible(one.changes.join("; ") || "its code or settings changed")}`} />`;
}

function because(documents) {
  return documents.length ? html` <span class="count">because of ${visible(documents.slice(0, 5).join(", "))}${documents.length > 5 ? ` and ${documents.length - 5} more` : ""}</span>` : "";
}

function Changes({ name, rows, show }) {
  if (!rows.length) return html`<p class="none">${name}: no change.</p>`;
  return html`<details open=${rows.length <= 30}><summary>${name}: ${count(rows.length, "change")}</summary>
    <ul>${rows.slice(0, MOST).map((one) => html`<li>${show(one)}</li>`)}</ul>${rows.length > MOST && html`<p class="none">The first ${MOST}; \`snapshots diff\` prints all.</p>`}</details>`;
}
