// The page: what the person does changes the state, and the state is shown.

const run = readRun(byId("run").textContent);
const titles = searchable(run);
const moments = secondMoments(run);
const steps = new Steps();
const rows = new Map();  // item → its row in the list of chosen items
const view = {model: null, scores: null, flipped: false, length: 10, round: null, changed: false};
const SHOWN = 6, STEP = 10, REASONS = 3;

function nameOf(item) {
  return titleOf(run, item);
}

function method() {
  return document.querySelector("input[name=method]:checked").value;
}

// Says something to screen readers, and to everybody who looks.
function say(text) {
  byId("said").textContent = text;
}

// Takes a step: shows the new state, and learns if that is wanted.
function take(state, text) {
  steps.push(state);
  refresh();
  if (text) say(text);
}

function refresh() {
  const started = performance.now();
  showRated();
  view.changed = true;
  if (byId("always").checked) learn(started);
  else showLearned();
  showProposals();
  showFound();
}

// Learns from all ratings, and shows what follows.
function learn(started = performance.now()) {
  const items = steps.now.ratings.map(([item]) => item);
  const ratings = steps.now.ratings.map(([, rating]) => rating);
  view.model = items.length === 0 ? null
    : method() === "mprank" ? fitMPRank(run, items, ratings)
      : fitPRank(run, items, ratings, Number(byId("passes").value));
  view.round = null;
  view.changed = false;
  score();
  showLearned();
  byId("time").textContent = view.model === null ? ""
    : `From the rating to the list: ${shown(performance.now() - started, 1)} ms.`;
}

function score() {
  const model = view.model;
  view.scores = model === null ? null
    : model.kind === "mprank" ? scoresOf(run, model) : prankScores(run, model);
}

// ---- choose

function excluded() {
  return new Set([...steps.now.chosen, ...steps.now.unknown]);
}

function choiceButton(item) {
  return element("li", {}, element("button", {
    type: "button", class: "choice",
    click: (event) => choose(item, event.detail === 0),
  }, nameOf(item)));
}

// Puts an item on the list to rate; who uses keys goes on to its stars.
function choose(item, byKeys) {
  take(withChosen(steps.now, item), `${nameOf(item)} is on your list: rate it.`);
  if (byKeys) rows.get(item).control.focus();
}

function showFound() {
  const text = byId("search").value;
  const found = search(titles, text, new Set(steps.now.chosen));
  byId("results").replaceChildren(...found.items.map(choiceButton));
  const more = found.count > found.items.length ? `, the first ${found.items.length}` : "";
  byId("found").textContent = text.trim() === "" ? ""
    : found.count === 0 ? "Nothing found." : `${found.count.toLocaleString("en")} found${more}:`;
}

function showProposals() {
  const out = excluded();
  const popular = wellKnown(run, out, SHOWN);
  popular.forEach((item) => out.add(item));
  const rated = steps.now.ratings.map(([item]) => item);
  const telling = informative(run, moments, rated, out, SHOWN);
  byId("popular").replaceChildren(...popular.map(choiceButton));
  byId("informative").replaceChildren(...telling.map(choiceButton));
  view.proposed = [...popular, ...telling];
  byId("others").disabled = view.proposed.length === 0;
}

// ---- rate

function showRated() {
  const {chosen, ratings} = steps.now;
  const given = new Map(ratings);
  for (const [item, row] of rows) {
    if (!chosen.includes(item)) {
      row.element.remove();
      rows.delete(item);
    }
  }
  for (const item of chosen) {
    if (!rows.has(item)) rows.set(item, ratedRow(item));
    rows.get(item).control.show(given.get(item) ?? null);
  }
  const elements = chosen.map((item) => rows.get(item).element);
  const list = byId("rated");
  // a row that stays in its place keeps the focus
  elements.forEach((each, i) => { if (list.children[i] !== each) list.insertBefore(each, list.children[i] ?? null); });
  byId("nothing").hidden = chosen.length > 0;
  byId("undo").disabled = !steps.canUndo;
  byId("clear").disabled = chosen.length === 0;
  byId("save-ratings").disabled = ratings.length === 0;
}

function ratedRow(item) {
  const rate = (rating) => take(withRating(steps.now, item, rating),
    `${nameOf(item)}: ${shownRating(rating)}.`);
  const control = ratingControl(run.scale, nameOf(item), `rating-${item}`, rate);
  const remove = element("button", {
    type: "button", class: "remove", title: "Remove", click: () => removeRow(item),
  }, element("span", {"aria-hidden": "true"}, "×"), unseen(`Remove ${nameOf(item)}`));
  const row = element("li", {}, element("span", {class: "title"}, nameOf(item)), control.element, remove);
  return {element: row, control};
}

function removeRow(item) {
  const place = steps.now.chosen.indexOf(item);
  take(without(steps.now, item), `${nameOf(item)} is removed.`);
  const next = steps.now.chosen[Math.min(place, steps.now.chosen.length - 1)];
  if (next === undefined) byId("search").focus();
  else rows.get(next).control.focus();
}

// ---- learn

function showLearned() {
  const model = view.model;
  byId("changed").hidden = !(view.changed && steps.now.ratings.length > 0);
  byId("learn").disabled = steps.now.ratings.length === 0;
  byId("results-of").hidden = model === null;
  byId("no-model").hidden = model !== null;
  byId("jump-list").hidden = model === null;
  byId("save-model").disabled = model === null || model.imported === true;
  byId("prank").hidden = model === null || model.kind !== "prank" || model.imported === true;
  if (model === null) return;
  byId("model").textContent = model.imported ? importedText(model)
    : model.kind === "mprank" ? mprankText(model) : prankText(model);
  if (!byId("prank").hidden) showRounds();
  showAgain();
  showUnseen();
}

function importedText(model) {
  const name = model.kind === "mprank" ? "MPRank" : "PRank";
  return `A model of ${name} from a file scores the list below. Press “Learn” to go back to your ratings.`;
}

function mprankText(model) {
  if (!model.learned) {
    return `${counted(model.items.length, "rating", "ratings")}, or all the same: the list is what is ` +
      `expected of somebody who has rated these ${run.noun}. MPRank learns from ${run.minRatings} ` +
      "different ratings on.";
  }
  return `MPRank solved one system of ${run.width} weights for ` +
    `${counted(model.items.length, "rating", "ratings")}. ${orderText(model)}`;
}

function prankText(model) {
  const mistakes = model.rounds.filter((round) => round.predicted !== round.rank).length;
  return `PRank went through ${counted(model.rounds.length, "round", "rounds")} and made ` +
    `${counted(mistakes, "mistake", "mistakes")}; each moved the line. ${orderText(model)}`;
}

// Returns how many pairs of rated items stand in the wrong order.
function orderText(model) {
  let pairs = 0, wrong = 0;
  model.items.forEach((a, i) => model.items.forEach((b, j) => {
    if (model.ratings[i] <= model.ratings[j]) return;
    pairs++;
    if (view.scores[a] <= view.scores[b]) wrong++;
  }));
  return pairs === 0 ? ""
    : `Of ${counted(pairs, "pair", "pairs")} with different ratings, ` +
      `${wrong === 0 ? "none stands" : wrong === 1 ? "1 stands" : `${wrong} stand`} in the wrong order.`;
}

function showRounds() {
  const model = view.model, last = model.rounds.length - 1;
  view.round = Math.min(view.round ?? last, last);
  const slider = byId("round");
  slider.max = last + 1;
  slider.value = view.round + 1;
  byId("round-of").textContent = `${view.round + 1} of ${last + 1}`;
  byId("earlier").disabled = view.round === 0;
  byId("later").disabled = view.round === last;
  drawRound(byId("line"), model, view.round);
  byId("round-text").textContent =
    roundText(model, view.round, (example) => `${example + 1} “${nameOf(model.items[example])}”`);
  byId("rounds").replaceChildren(...model.rounds.map((round, number) => element("tr", {
    "aria-current": number === view.round ? "true" : false,
  }, ...[
    number + 1, `${round.example + 1} ${nameOf(model.items[round.example])}`, round.rank, round.predicted,
    round.predicted === round.rank ? "✓ right" : `✗ off by ${Math.abs(round.predicted - round.rank)}`,
    round.moves.map((tau) => (tau === 0 ? "0" : signedWhole(tau))).join(" "),
  ].map((text, column) => element(column === 0 ? "th" : "td", column === 0 ? {scope: "row"} : {},
    String(text))))));
}

function showRound(number) {
  view.round = Math.max(0, Math.min(number, view.model.rounds.length - 1));
  showRounds();
}

// ---- the lists

// Returns the rank that the model gives an item.
function rankOfScore(item) {
  return view.model.kind === "mprank" ? rankOf(run.scale, view.scores[item])
    : predictedRank(view.scores[item], view.model.thresholds);
}

// Returns a rank; where it is not the rating itself, that too.
function rankText(rank) {
  const level = run.scale.levels[rank - 1];
  return level === rank ? String(rank) : `${rank} (${shownRating(level)})`;
}

function inOrder(items) {
  const sign = view.flipped ? 1 : -1;
  return items.sort((a, b) => sign * (view.scores[a] - view.scores[b]) || run.byId[a] - run.byId[b]);
}

// Returns the ratings that the model has learned from; a model from a file is shown beside those now.
function learnedRatings() {
  const model = view.model;
  return new Map(model.imported ? steps.now.ratings : model.items.map((item, i) => [item, model.ratings[i]]));
}

function showAgain() {
  const given = learnedRatings();
  byId("again").replaceChildren(...inOrder([...given.keys()]).map((item, place) => {
    const rating = given.get(item), rank = rankOf(run.scale, Math.fround(rating));
    const predicted = rankOfScore(item), off = predicted - rank;
    const sign = off === 0 ? "✓" : off > 0 ? `▲ ${off}` : `▼ ${-off}`;
    const words = off === 0 ? "the same" : off > 0 ? "above yours" : "below yours";
    const verdict = element("span", {title: words}, sign, unseen(` ${words}`));
    return element("tr", {}, ...[
      String(place + 1), nameOf(item), run.scale.free ? `${rank} (${shownRating(rating)})` : rankText(rank),
      rankText(predicted), verdict, shown(view.scores[item]),
    ].map((text, column) => element(column === 1 ? "th" : "td", column === 1 ? {scope: "row"} : {}, text)));
  }));
}

function unseenItems() {
  const out = new Set(steps.now.chosen);
  const items = [];
  for (let item = 0; item < run.size; item++) if (run.listed[item] && !out.has(item)) items.push(item);
  return inOrder(items);
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
  const value = view.scores[item];
  const interval = scoreInterval(run, view.model, item, value);
  const sure = interval === null ? "" : `; with 90 % between ${shown(interval[0])} and ${shown(interval[1])}`;
  const bar = view.model.kind === "mprank" ? scoreBar(run.scale, value, interval) : null;
  return element("li", {},
    element("div", {class: "head"}, element("strong", {}, nameOf(item)), element("button", {
      type: "button", class: "small", click: (event) => choose(item, event.detail === 0),
    }, "Seen it", unseen(`: rate ${nameOf(item)}`))),
    element("div", {class: "soft"}, `rank ${rankText(rankOfScore(item))}, score ${shown(value)}${sure}`),
    bar, whyText(item));
}

// Returns the rated items that moved the score most, and how far.
function whyText(item) {
  const model = view.model;
  if (model.imported) return null;
  const pulls = model.kind === "mprank" ? pullsOf(run, model, item) : prankPulls(run, model, item);
  const strongest = pulls.filter(({pull}) => Math.abs(pull) >= 0.005).slice(0, REASONS);
  if (strongest.length === 0) return element("div", {class: "why soft"}, "No rating of yours moves it.");
  return element("div", {class: "why soft"}, "Because of ",
    strongest.map(({item: rated, pull}) => `${nameOf(rated)} (${signed(pull)})`).join(", "), ".");
}

// ---- files

function save(name, type, text) {
  const link = element("a", {download: name, href: URL.createObjectURL(new Blob([text], {type}))});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function saveRatings() {
  const items = steps.now.ratings.map(([item]) => item);
  const ratings = steps.now.ratings.map(([, rating]) => rating);
  save("ratings.csv", "text/csv", ratingsAsCSV(run, items, ratings, "me"));
}

async function openFile(event) {
  const file = event.target.files[0];
  event.target.value = "";
  if (!file) return;
  try {
    const text = await file.text();
    if (text.trimStart().startsWith("{")) openModel(text, file.name);
    else openRatings(text, file.name);
  } catch (error) {
    say(`${file.name} cannot be used: ${error.message}.`);
  }
}

function openRatings(text, name) {
  const found = ratingsFromCSV(run, text);
  let state = {...emptyState(), unknown: steps.now.unknown};
  found.items.forEach((item, i) => { state = withRating(state, item, found.ratings[i]); });
  const skipped = found.skipped > 0
    ? ` ${counted(found.skipped, "row", "rows")} left out: of another user, an item that this page lacks, ` +
      "or no rating of the scale." : "";
  take(state, `${counted(found.items.length, "rating", "ratings")} from ${name}.${skipped}`);
}

function openModel(text, name) {
  view.model = modelFromJSON(run, text);
  document.querySelector(`input[name=method][value=${view.model.kind}]`).checked = true;
  view.changed = false;
  score();
  showLearned();
  say(`The model of ${name} scores the list now.`);
}

// ---- begin

function listen() {
  byId("search").addEventListener("input", showFound);
  byId("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const first = byId("results").querySelector("button");
    if (first) first.click();
  });
  byId("others").addEventListener("click", () => take(withUnknown(steps.now, view.proposed), "Others are proposed."));
  byId("undo").addEventListener("click", undo);
  byId("clear").addEventListener("click", () => take(emptyState(), "You begin again."));
  byId("learn").addEventListener("click", () => {
    learn();
    byId("learned-title").focus();
  });
  byId("always").addEventListener("change", refresh);
  byId("passes").addEventListener("change", () => learn());
  for (const input of document.querySelectorAll("input[name=method]")) {
    input.addEventListener("change", () => { if (steps.now.ratings.length > 0) learn(); });
  }
  byId("round").addEventListener("input", (event) => showRound(Number(event.target.value) - 1));
  byId("earlier").addEventListener("click", () => showRound(view.round - 1));
  byId("later").addEventListener("click", () => showRound(view.round + 1));
  byId("flip").addEventListener("click", () => {
    view.flipped = !view.flipped;
    view.length = STEP;
    showAgain();
    showUnseen();
    say(view.flipped ? "The list is flipped: the last come first." : "The first come first again.");
  });
  byId("more").addEventListener("click", () => {
    view.length += STEP;
    showUnseen();
  });
  byId("save-ratings").addEventListener("click", saveRatings);
  byId("save-model").addEventListener("click", () => save(`${view.model.kind}.json`, "application/json", modelAsJSON(run, view.model)));
  byId("file").addEventListener("change", openFile);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement && event.target.type === "search";
    if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing) {
      event.preventDefault();
      undo();
    }
  });
}

function undo() {
  if (!steps.canUndo) return;
  steps.undo();
  refresh();
  say("Taken back.");
}

listen();
refresh();
document.documentElement.dataset.ready = "true";
