// Search as you type: every word must be in the title, whatever case and accents.

const FOUND = 12;

// Returns text in lower case, without accents.
function plain(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

// Returns the titles to search in.
function searchable(run) {
  return run.ids.map((_, item) => plain(titleOf(run, item)));
}

// Returns how many titles have all words, and the best: those that begin with the text come first,
// then those with a word that begins so, then all others; the most rated first among equals.
function search(titles, text, excluded) {
  const whole = plain(text.trim()), words = whole.split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return {count: 0, items: []};
  const groups = [[], [], []];
  titles.forEach((title, item) => {
    if (excluded.has(item) || !words.every((word) => title.includes(word))) return;
    const group = title.startsWith(whole) ? 0 : ` ${title}`.includes(` ${whole}`) ? 1 : 2;
    groups[group].push(item);
  });
  const all = groups.flat();
  return {count: all.length, items: all.slice(0, FOUND)};
}
