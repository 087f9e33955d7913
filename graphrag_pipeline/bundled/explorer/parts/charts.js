// Small charts as SVG: values over snapshots with their threshold, and a bar for a share. Words beside them say the same.

import { html } from "../core/ui.js";

const WIDTH = 120, HEIGHT = 32, EDGE = 4;

/** `values` from the oldest snapshot to the newest; `threshold` may be null; `label` is read to those who do not see it. */
export function Line({ values, threshold, label }) {
  const all = threshold === null || threshold === undefined ? values : [...values, threshold];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const y = (value) => HEIGHT - EDGE - ((value - low) / (high - low || 1)) * (HEIGHT - 2 * EDGE);
  const x = (i) => EDGE + (values.length === 1 ? 1 : i / (values.length - 1)) * (WIDTH - 2 * EDGE);
  const last = values.length - 1;
  return html`<svg class="line" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${label}>
    ${all.length > values.length && html`<line class="threshold" x1="0" x2=${WIDTH} y1=${y(threshold)} y2=${y(threshold)} />`}
    <polyline points=${values.map((value, i) => `${x(i)},${y(value)}`).join(" ")} />
    <circle cx=${x(last)} cy=${y(values[last])} r="3" /></svg>`;
}

/** A bar whose length is a share from 0 to 1. */
export function Bar({ share }) {
  return html`<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="whole" width="100" height="4" /><rect width=${100 * Math.min(1, Math.max(0, share || 0))} height="4" /></svg>`;
}
