// How the site's search orders its results (html_search_scorer); questions.py does the same in Python.
// A page or heading that is named as the reader asks comes first. Parameters come after headings:
// every method has the same ones, and they would fill the first page of results.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 3,
  objPrio: { 0: 0, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([, title, , , score, , kind]) => {
    if (kind === "object" || kind === "index") return score;
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = query.toLowerCase().split(/\s+/).filter((word) => word.length > 2);
    const name = title.toLowerCase();
    return score + 10 * words.filter((word) => name.includes(word)).length;
  },
};
