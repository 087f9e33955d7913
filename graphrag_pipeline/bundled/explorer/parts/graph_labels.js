// Names in the picture of the graph, cut and divided by the width that they take.

import { shorten } from "../core/text.js";

const OVER = 1.9; // a word may reach so far over the edge of its disc

/** Return a text as lines of a width, the last one cut if there are more. */
export function wrap(context, text, width, most) {
  const lines = [];
  for (const word of text.split(/\s+/)) {
    const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : "";
    if (longer && (context.measureText(longer).width <= width || lines.length === most)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.map((line) => fit(context, line, line.includes(" ") ? width : OVER * width));
}

/** Return the beginning of a text that fits into a width, with a mark where it is cut. */
export function fit(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const letter = context.measureText("n").width;
  let shown = shorten(text, Math.max(4, Math.floor(width / letter)));
  while (shown.length > 4 && context.measureText(shown).width > width) shown = `${shown.slice(0, -2).trimEnd()}…`;
  return shown;
}
