// A treemap: rectangles whose areas are sizes, as links in the order of size (squarified, Bruls et al. 2000).

import { visible } from "../core/text.js";
import { html } from "../core/ui.js";

const WIDTH = 100, HEIGHT = 60;

export function Treemap({ items }) {
  const placed = squarify(items.filter((one) => one.size > 0), { x: 0, y: 0, width: WIDTH, height: HEIGHT });
  return html`<ul class="treemap">${placed.map(({ item, x, y, width, height }) => html`<li key=${item.key}
    style=${{ left: `${x}%`, top: `${(y / HEIGHT) * 100}%`, width: `${width}%`, height: `${(height / HEIGHT) * 100}%` }}>
    <a href=${item.href} title=${visible(`${item.title}: ${item.about}`)}><span>${visible(item.title)}</span> <small>${item.about}</small></a></li>`)}</ul>`;
}

/** Return the items with their rectangles; rows are filled along the shorter side while that makes them squarer. */
export function squarify(items, space) {
  const total = items.reduce((sum, one) => sum + one.size, 0);
  const scale = (space.width * space.height) / (total || 1);
  const areas = [...items].sort((a, b) => b.size - a.size).map((item) => ({ item, area: item.size * scale }));
  const placed = [];
  let rest = { ...space }, place = 0;
  while (place < areas.length) {
    const side = Math.min(rest.width, rest.height);
    let end = place + 1;
    while (end < areas.length && worst(areas.slice(place, end + 1), side) <= worst(areas.slice(place, end), side)) end += 1;
    rest = lay(areas.slice(place, end), rest, placed);
    place = end;
  }
  return placed;
}

function worst(row, side) {
  const sum = row.reduce((total, one) => total + one.area, 0);
  const [first, last] = [row[0].area, row[row.length - 1].area];
  return Math.max((side * side * first) / (sum * sum), (sum * sum) / (side * side * last));
}

function lay(row, rest, placed) {
  const sum = row.reduce((total, one) => total + one.area, 0);
  const isTall = rest.width >= rest.height;
  const depth = sum / (isTall ? rest.height : rest.width);
  let offset = 0;
  for (const { item, area } of row) {
    const length = area / depth;
    placed.push(isTall ? { item, x: rest.x, y: rest.y + offset, width: depth, height: length }
      : { item, x: rest.x + offset, y: rest.y, width: length, height: depth });
    offset += length;
  }
  return isTall ? { ...rest, x: rest.x + depth, width: rest.width - depth } : { ...rest, y: rest.y + depth, height: rest.height - depth };
}
