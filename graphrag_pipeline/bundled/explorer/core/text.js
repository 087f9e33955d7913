// Text of documents and models: control characters made visible, offsets in code points, markdown as elements.
// No function here makes HTML: markdown becomes a list of plain values that `parts/markdown.js` shows.

// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Return a text of as many characters in which no control, tag or mark of direction hides. Hyphenation marks stay. */
export function visible(text) {
  return String(text).replace(HIDDEN, (mark) => {
    const code = mark.codePointAt(0);
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return code === 127 ? "\u2421" : "\ufffd";
  });
}

/** Return ", page 3" or ", pages 3-4" of a citation; "" if they are not known. */
export function pages({ first_page: first, last_page: last }) {
  if (typeof first !== "number") return "";
  return first === last ? `, page ${first}` : `, pages ${first}-${last}`;
}

/** Return the beginning of a text, with a mark where it is cut. */
export function shorten(text, most) {
  const points = Array.from(visible(text));
  return points.length > most ? `${points.slice(0, most - 1).join("").trimEnd()}…` : points.join("");
}

/** Return a function that cuts a text by offsets in code points, as the server counts them. */
export function cutter(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (start, end) => text.slice(start, end);
  const points = Array.from(text);
  return (start, end) => points.slice(start, end).join("");
}

export function lengthOf(text) {
  return /[\ud800-\udbff]/.test(text) ? Array.from(text).length : text.length;
}

/** Return [text, marks] pieces of a text; `marks` are those of {start, end, ...} that cover the piece. */
export function markUp(text, marks, first = 0) {
  const cut = cutter(text);
  const end = first + lengthOf(text);
  const inside = marks.filter((mark) => mark.end > first && mark.start < end);
  const bounds = new Set([first, end]);
  for (const mark of inside) bounds.add(Math.max(first, mark.start)).add(Math.min(end, mark.end));
  const places = [...bounds].sort((a, b) => a - b);
  const starts = [...inside].sort((a, b) => a.start - b.start);
  let open = [], next = 0;
  return places.slice(0, -1).map((place, i) => {
    while (next < starts.length && starts[next].start <= place) open.push(starts[next++]);
    open = open.filter((mark) => mark.end > place);
    return [cut(place - first, places[i + 1] - first), [...open]];
  });
}

/** Return the blocks of a markdown text: {kind, level, lines | items}. */
export function readBlocks(text) {
  const blocks = [];
  let fence = null;
  for (const line of String(text).split("\n")) {
    const last = blocks[blocks.length - 1];
    if (fence) {
      if (line.startsWith("```")) fence = null; else fence.lines.push(line);
    } else if (line.startsWith("```")) {
      blocks.push((fence = { kind: "code", lines: [] }));
    } else if (!line.trim()) {
      blocks.push({ kind: "gap" });
    } else {
      addLine(blocks, last, line);
    }
  }
  return blocks.filter((block) => block.kind !== "gap");
}

function addLine(blocks, last, line) {
  const heading = /^(#{1,6})\s+(.*)$/.exec(line);
  const item = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/.exec(line);
  const quoted = /^>\s?(.*)$/.exec(line);
  if (heading) blocks.push({ kind: "heading", level: heading[1].length, lines: [heading[2]] });
  else if (item) addItem(blocks, last, item[1] === undefined ? "bullets" : "numbers", item[2]);
  else if (quoted) addTo(blocks, last, "quote", quoted[1]);
  else if (last && (last.kind === "bullets" || last.kind === "numbers")) last.items[last.items.length - 1] += ` ${line.trim()}`;
  else addTo(blocks, last, "paragraph", line);
}

function addItem(blocks, last, kind, text) {
  if (last && last.kind === kind) last.items.push(text);
  else blocks.push({ kind, items: [text] });
}

function addTo(blocks, last, kind, line) {
  if (last && last.kind === kind) last.lines.push(line);
  else blocks.push({ kind, lines: [line] });
}

// No bracket inside a label, and an end to each address: a line of 20,000 brackets takes no longer than other text.
const INLINE = /\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|`([^`]+)`|\[Data: ([^[\]]+)\]|\[(\d+(?:,\s*\d+)*)\]|\[([^[\]]+)\]\((https?:\/\/[^\s)]{1,2000})\)/g;

/** Return the pieces of a line: {kind: text | strong | em | code | data | citation | link, ...}. */
export function readInline(line) {
  const pieces = [];
  let place = 0;
  for (const found of line.matchAll(INLINE)) {
    if (found.index > place) pieces.push({ kind: "text", text: line.slice(place, found.index) });
    place = found.index + found[0].length;
    const [whole, strong, em, code, data, numbers, label, address] = found;
    if (strong) pieces.push({ kind: "strong", text: strong });
    else if (em) pieces.push({ kind: "em", text: em });
    else if (code) pieces.push({ kind: "code", text: code });
    else if (data) pieces.push({ kind: "data", records: readData(data), text: whole });
    else if (numbers) pieces.push({ kind: "citation", numbers: numbers.split(",").map(Number) });
    else pieces.push({ kind: "link", text: label, address });
  }
  if (place < line.length) pieces.push({ kind: "text", text: line.slice(place) });
  return pieces;
}

/** Return [kind, numbers] pairs of a citation such as `Entities (5, 7); Reports (1)`. */
function readData(text) {
  return [...text.matchAll(/([A-Za-z_ ]+?)\s*\(([^)]*)\)/g)].map(([, kind, list]) =>
    [kind.trim(), list.split(",").map((one) => one.trim()).filter((one) => /^\d+$/.test(one))]);
}
