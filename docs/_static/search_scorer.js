// Search ranks the quickstart, the tutorial and the guides first, then explanations, then pages made from code.
// Sphinx puts this file before its own `searchtools.js` (option `html_search_scorer`), which fills in nothing: all
// numbers but `score` are its defaults.
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    if (/^(quickstart|tutorial|guides\/)/.test(page)) return score + 20;
    return page.startsWith("reference/") ? score - 20 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
