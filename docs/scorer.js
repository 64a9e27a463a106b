/* How the search of the site ranks pages: Sphinx's own weights, but what explains comes before what lists.
   A page of the reference or the changelog names everything and answers little. */
const LISTS = /^(changelog|api\/|cli|contributing|auto_examples\/index)/;
var Scorer = {
  score: ([page, , , , score]) => (LISTS.test(page) ? 0.5 * score : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
