// Steps 4 to 7: the rated items ranked again, the others in order, and the flipped list.

const STEP = 10, REASONS = 3;

// Returns the rank that the model gives an item.
function rankOfScore(item) {
  return view.model.kind === "mprank" ? rankOf(run.scale, view.scores[item])
    : predictedRank(view.scores[item], view.model.thresholds);
}

// Returns a rank; where that is not the rating itself, the rating too.
function rankText(rank, rating = run.scale.levels[rank - 1]) {
  return rating === rank ? String(rank) : `${rank} (${shownRating(rating)})`;
}

// Sorts items by their values, the best first unless the list is flipped.
function inOrder(items, values) {
  const sign = view.flipped ? 1 : -1;
  return items.sort((a, b) => sign * (values[a] - values[b]) || run.byId[a] - run.byId[b]);
}

// Returns what orders the unseen items: the scores, and choices where these count.
function listValues() {
  const counts = run.choices !== null && view.model.kind === "mprank" && !view.model.imported;
  byId("choices-label").hidden = !counts;
  return counts && byId("choices").checked ? withChoices(run, view.scores, view.model.items)
    : view.scores;
}

// Returns the ratings that the model has learned from; beside a model from a file, those now.
function learnedRatings() {
  const model = view.model;
  return new Map(model.imported ? steps.now.ratings
    : model.items.map((item, i) => [item, model.ratings[i]]));
}

function showAgain() {
  const given = learnedRatings();
  byId("again").replaceChildren(...inOrder([...given.keys()], view.scores).map((item, place) => {
    const rating = given.get(item), rank = rankOf(run.scale, Math.fround(rating));
    const predicted = rankOfScore(item);
    return tableRow([
      String(place + 1), nameOf(item), rankText(rank, run.scale.free ? rating : undefined),
      rankText(predicted), besideYours(predicted - rank), shown(view.scores[item]),
    ], 1);
  }));
}

// Returns how far a predicted rank is from the person's, as a sign and in words.
function besideYours(off) {
  const sign = off === 0 ? "✓" : off > 0 ? `▲ ${off}` : `▼ ${-off}`;
  const words = off === 0 ? "the same" : off > 0 ? "above yours" : "below yours";
  return element("span", {title: words}, sign, unseen(` ${words}`));
}

function unseenItems() {
  const out = new Set(steps.now.chosen), items = [];
  for (let item = 0; item < run.size; item++) {
    if (run.listed[item] && !out.has(item)) items.push(item);
  }
  return inOrder(items, listValues());
}

function showUnseen() {
  const items = unseenItems();
  byId("unseen-title").textContent = !view.flipped ? "Not yet seen: what comes first"
    : run.noun === "films" ? "What not to watch" : "What to leave alone";
  byId("flip").setAttribute("aria-pressed", String(view.flipped));
  byId("unseen").replaceChildren(...items.slice(0, view.length).map(unseenRow));
  byId("more").hidden = items.length <= view.length;
}

function unseenRow(item) {
  const value = view.scores[item], interval = scoreInterval(run, view.model, item, value);
  const sure = interval === null ? ""
    : `; with 90 % between ${shown(interval[0])} and ${shown(interval[1])}`;
  const seen = element("button", {
    type: "button", class: "small", click: (event) => choose(item, event.detail === 0),
  }, "Seen it", unseen(`: rate ${nameOf(item)}`));
  return element("li", {},
    element("div", {class: "head"}, element("strong", {}, nameOf(item)), seen),
    element("div", {class: "soft"},
      `rank ${rankText(rankOfScore(item))}, score ${shown(value)}${sure}`),
    view.model.kind === "mprank" ? scoreBar(run.scale, value, interval) : null, reasons(item));
}

// Returns the rated items that moved the score most, and how far.
function reasons(item) {
  const model = view.model;
  if (model.imported) return null;
  const pulls = model.kind === "mprank" ? pullsOf(run, model, item) : prankPulls(run, model, item);
  const strongest = pulls.filter(({pull}) => Math.abs(pull) >= 0.005).slice(0, REASONS);
  const named = strongest.map(({item: rated, pull}) => `${nameOf(rated)} (${signed(pull)})`);
  const text = named.length === 0 ? "No rating of yours moves it."
    : `Because of ${named.join(", ")}.`;
  return element("div", {class: "soft"}, text);
}

function flip() {
  view.flipped = !view.flipped;
  view.length = STEP;
  showAgain();
  showUnseen();
  say(view.flipped ? "The list is flipped: the last come first." : "The first come first again.");
}

function showMore() {
  view.length += STEP;
  showUnseen();
}
