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

/** Return the best written form of an entity's name, or the title of another record. */
export const nameOf = (one) => visible(one.name || one.title);

/** Return the type of an entity as a word: "Person" for PERSON. */
export function typeWord(type) {
  const word = visible(type ?? "").toLowerCase().replaceAll("_", " ");
  return word === "geo" ? "Place" : word.charAt(0).toUpperCase() + word.slice(1);
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

/** Return how long ago a time in ISO 8601 was, in words. */
export function age(iso, now = Date.now()) {
  const seconds = (new Date(iso) - now) / 1000;
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const [unit, size] = units.find(([, one]) => -seconds >= one) ?? [];
  return unit ? new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.round(seconds / size), unit) : "just now";
}

const SEPARATOR = /^\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?$/;

/**
 * Return the blocks of a markdown text: {kind, level, lines}; front matter is one of kind "front"; of a list {kind, start, items: [{depth, lines}]}, of a
 * table {kind, rows: cells}. A line and a cell is {text, at}; `at` is its offset in the whole text.
 */
export function readBlocks(text) {
  const blocks = [];
  let fence = null, at = 0;
  const lines = String(text).split("\n").map((line) => {
    const found = { text: line, at };
    at += line.length + 1;
    return found;
  });
  const frontEnd = lines[0].text === "---" ? lines.findIndex((line, i) => i && line.text.trim() === "---") + 1 : 0;
  const front = { kind: "front", lines: [] };
  if (frontEnd) blocks.push(front);
  lines.forEach((line, i) => {
    const last = blocks[blocks.length - 1];
    if (i < frontEnd) {
      if (i && i < frontEnd - 1) front.lines.push(line);
    } else if (fence) {
      if (line.text.startsWith("```")) fence = null; else fence.lines.push(line);
    } else if (line.text.startsWith("```")) blocks.push((fence = { kind: "code", lines: [] }));
    else if (!line.text.trim()) blocks.push({ kind: "gap" });
    else if (last?.kind === "table" && line.text.includes("|")) {
      if (i !== last.first + 1) last.rows.push(readCells(line));
    } else if (line.text.includes("|") && lines[i + 1]?.text.includes("|") && SEPARATOR.test(lines[i + 1].text.trim())) {
      blocks.push({ kind: "table", first: i, rows: [readCells(line)] });
    } else addLine(blocks, last, line);
  });
  return blocks.filter((block) => block.kind !== "gap");
}

/** Return the cells of a row of a table; a bar behind a backslash divides nothing. */
function readCells({ text, at }) {
  const cells = [];
  for (const { 0: cell, index } of text.matchAll(/(?:[^|\\]|\\[^])+|(?<=\|)(?=\|)/g)) cells.push({ text: cell.trim(), at: at + index + cell.search(/\S|$/) });
  if (text.startsWith(" ") && cells[0]?.text === "") cells.shift();
  if (cells.length && cells[cells.length - 1].text === "" && /\|\s+$/.test(text)) cells.pop();
  return cells;
}

function addLine(blocks, last, { text, at }) {
  const part = (found) => ({ text: found, at: at + text.length - found.length });
  const heading = /^(#{1,6})\s+(\S.*)$/.exec(text);
  const item = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(\S.*)$/.exec(text);
  const quoted = /^>\s?(.*)$/.exec(text);
  if (heading) blocks.push({ kind: "heading", level: heading[1].length, lines: [part(heading[2])] });
  else if (/^\s*([-*_])(?:\s*\1){2,}\s*$/.test(text)) blocks.push({ kind: "rule" });
  else if (item) addItem(blocks, last, item, part(item[3]));
  else if (quoted) addTo(blocks, last, "quote", part(quoted[1]));
  else if (last?.items) last.items[last.items.length - 1].lines.push(part(text.trimStart()));
  else addTo(blocks, last, "paragraph", { text, at });
}

function addItem(blocks, last, [, indent, number], line) {
  const kind = number === undefined ? "bullets" : "numbers";
  const item = { depth: Math.min(3, Math.floor(indent.length / 2)), lines: [line] };
  if (last?.kind === kind) last.items.push(item);
  else blocks.push({ kind, start: Number(number ?? 1), items: [item] });
}

function addTo(blocks, last, kind, line) {
  if (last && last.kind === kind) last.lines.push(line);
  else blocks.push({ kind, lines: [line] });
}

// No bracket inside a label, and an end to each address: a line of 20,000 brackets takes no longer than other text.
const INLINE = new RegExp([
  /\\([\\`*_[\]#|>.-])/, /\*{2,3}([^*]+)\*{2,3}/, /\*([^*\s][^*]*)\*/, /`([^`]+)`/, /\[Data: ([^[\]]+)\]/, /\[(\d+(?:,\s*\d+)*)\]/,
  /!\[([^[\]]*)\]\([^\s)]{1,2000}\)/, /\[([^[\]]+)\]\(([^\s)]{1,2000})(?: "[^"]{0,200}")?\)/,
].map((one) => one.source).join("|"), "dg");
const KINDS = ["", "text", "strong", "em", "code", "data", "citation", "picture", "link"];

/** Return the pieces of a line: {kind: text | strong | em | code | data | citation | picture | link, text, at, ...}. */
export function readInline({ text: line, at }) {
  const pieces = [];
  let place = 0;
  for (const found of line.matchAll(INLINE)) {
    if (found.index > place) pieces.push({ kind: "text", text: line.slice(place, found.index), at: at + place });
    place = found.index + found[0].length;
    const group = found.findIndex((one, i) => i && one !== undefined);
    const piece = { kind: KINDS[group], text: found[group], at: at + found.indices[group][0] };
    if (piece.kind === "data") piece.records = readData(piece.text);
    if (piece.kind === "citation") piece.numbers = piece.text.split(",").map(Number);
    if (piece.kind === "link") piece.address = found[group + 1];
    pieces.push(piece);
  }
  if (place < line.length) pieces.push({ kind: "text", text: line.slice(place), at: at + place });
  return pieces;
}

/** Return the beginning of a Markdown text without its marks and citations, on one line. */
export function excerpt(text, most) {
  const lines = readBlocks(text).flatMap((block) => block.lines ?? block.items?.flatMap((item) => item.lines) ?? block.rows?.flat() ?? []);
  const words = lines.flatMap((line) => [...readInline(line), { kind: "text", text: " " }]).filter((piece) => !["data", "citation"].includes(piece.kind)).map((piece) => piece.text);
  return shorten(words.join("").replace(/\s+/g, " ").trim(), most);
}

const CITED = { entity: "Entities", relationship: "Relationships", report: "Reports", text_unit: "Sources", claim: "Claims" };

/** Return the cited records of a report as {place, list, number, name, ...}, in the order of its text, by what cites them: "Entities 5". */
export function readCited({ summary, findings, cited }) {
  const texts = [summary, ...findings.flatMap((one) => [one.summary, one.explanation])];
  const order = readData(texts.join("\n")).flatMap(([list, numbers]) => numbers.map((number) => `${list} ${number}`));
  const named = cited.map((one) => ({ ...one, list: CITED[one.kind], key: `${CITED[one.kind]} ${one.number}` }));
  const rank = ({ key }) => (order.includes(key) ? order.indexOf(key) : order.length);
  return new Map(named.sort((a, b) => rank(a) - rank(b)).map((one, i) => [one.key, { ...one, place: i + 1 }]));
}

/** Return [kind, numbers] pairs of a citation such as `Entities (5, 7); Reports (1)`. */
function readData(text) {
  return [...text.matchAll(/([A-Za-z_ ]+?)\s*\(([^)]*)\)/g)].map(([, kind, list]) =>
    [kind.trim(), list.split(",").map((one) => one.trim()).filter((one) => /^\d+$/.test(one))]);
}
