// The page of a review: a candidate beside the published snapshot, before anything is published.

import { get } from "../core/api.js";
import { visible } from "../core/text.js";
import { count, html, Loaded, number, Table, Title } from "../core/ui.js";
import { Diff } from "./snapshots.js";

const KINDS = { waiting: "watch", rejected: "bad", published: "good", within: "good", beyond: "watch" };

export default class Review extends Loaded {
  async request({ at: { key } }) { return (await get(`/snapshots/${key}/review`, {}, { isFresh: true })).review; }

  show({ candidate, state, reason, published, diff, problems, n_calls: calls, cost, n_questions: asked, questions, figures }) {
    const measured = figures.filter((one) => one.before !== null || one.after !== null);
    return html`<${Title}>Review of a candidate</>
      <p class="lead"><code>${candidate}</code>${state && html` <span class=${`pill ${KINDS[state]}`}>${state}</span>`} beside ${published ? html`the published <code>${published}</code>` : "nothing: none is published"}</p>
      ${state === "rejected" && html`<p>${visible(reason)}</p>`}
      ${state === "waiting" && html`<p>To decide, run <code>graphrag-pipeline review publish</code> or <code>graphrag-pipeline review reject --reason "..."</code>, or materialize <code>index_snapshot</code> in Dagster. This server publishes nothing.</p>`}
      <h2>Checks and cost</h2>
      ${problems.length ? html`<ul class="changes">${problems.map((one) => html`<li><span class="pill bad">failed</span> ${visible(one)}</li>`)}</ul>` : html`<p><span class="pill good">passed</span> All checks passed.</p>`}
      <p>${count(calls, "model call")} since the publication, $${number(cost, 4)}.</p>
      ${asked > 0 && html`<h2>Gold questions</h2><p>${number(questions.length)} of ${count(asked, "question")} have another answer or other evidence; of a long answer, the beginning is shown.</p>
        ${questions.map((one) => html`<h3>${visible(one.question)}</h3><div class="beside"><${Answer} name="Before" text=${one.answer_before} passages=${one.before} /><${Answer} name="After" text=${one.answer_after} passages=${one.after} /></div>`)}`}
      ${diff && html`<${Diff} diff=${diff} isNext=${true} />`}
      ${measured.length > 0 && html`<h2>Quality</h2><${Table} label="Quality before and after" rows=${measured} columns=${[
        ["Figure", (one) => visible(one.meaning)], ["Before", (one) => number(one.before), "number"], ["After", (one) => number(one.after), "number"],
        ["Threshold", (one) => visible(one.threshold) || "none"],
        ["", (one) => html`${one.verdict && html`<span class=${`pill ${KINDS[one.verdict]}`}>${one.verdict}</span>`} ${visible(one.advice)}`]]} />`}`;
  }
}

function Answer({ name, text, passages }) {
  return html`<section aria-label=${name}><h4>${name}</h4><p>${visible(text)}</p>
    ${passages.length ? html`<p class="count">Evidence</p><ol>${passages.map((one) => html`<li>${visible(one)}</li>`)}</ol>` : html`<p class="none">No evidence.</p>`}</section>`;
}
