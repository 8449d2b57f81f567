// The page: what the person does changes the state, and the state is shown.

const run = readRun(byId("run").textContent);
const titles = searchable(run);
const moments = secondMoments(run);
const steps = new Steps();
const view = {
  model: null, scores: null, flipped: false, length: STEP, round: null, changed: false, proposed: [],
};

function nameOf(item) {
  return titleOf(run, item);
}

// Says something to screen readers, and to everybody who looks.
function say(text) {
  byId("said").textContent = text;
}

// Takes a step: shows the new state, and learns if that is wanted.
function take(state, text) {
  steps.push(state);
  refresh();
  say(text ?? "");
}

function undo() {
  if (!steps.canUndo) return;
  steps.undo();
  refresh();
  say("Taken back.");
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
  const fit = () => document.querySelector("input[name=method]:checked").value === "mprank"
    ? fitMPRank(run, items, ratings)
    : fitPRank(run, items, ratings, Number(byId("passes").value));
  view.model = items.length === 0 ? null : orNull(fit);
  byId("unsolved").hidden = items.length === 0 || view.model !== null;
  view.round = null;
  view.changed = false;
  score();
  showLearned();
  byId("time").textContent = view.model === null ? ""
    : `From the rating to the list: ${shown(performance.now() - started, 1)} ms.`;
}

// Returns what `solve` does; null where rounding has left no system that can be solved.
function orNull(solve) {
  try {
    return solve();
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function score() {
  const model = view.model;
  view.scores = model === null ? null
    : model.kind === "mprank" ? scoresOf(run, model) : prankScores(run, model);
}

function listen() {
  const clicks = {
    others: () => take(withUnknown(steps.now, view.proposed), "Others are proposed."),
    undo,
    clear: () => take(emptyState(), "You begin again."),
    learn: () => {
      learn();
      byId("learned-title").focus();
    },
    earlier: () => showRound(view.round - 1),
    later: () => showRound(view.round + 1),
    "last-update": () => showRound(lastUpdate(view.model)),
    flip,
    more: showMore,
    "save-ratings": saveRatings,
    "save-model": saveModel,
  };
  for (const [id, act] of Object.entries(clicks)) byId(id).addEventListener("click", act);
  byId("search").addEventListener("input", showFound);
  byId("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    byId("results").querySelector("button")?.click();
  });
  byId("always").addEventListener("change", refresh);
  byId("round").addEventListener("input", (event) => showRound(Number(event.target.value) - 1));
  byId("file").addEventListener("change", openFile);
  for (const input of [byId("passes"), ...document.querySelectorAll("input[name=method]")]) {
    input.addEventListener("change", () => { if (steps.now.ratings.length > 0) learn(); });
  }
  byId("choices").addEventListener("change", showUnseen);
  document.addEventListener("keydown", undoByKeys);
}

// Ctrl+Z takes a step back; in the search field it is the browser's.
function undoByKeys(event) {
  const typing = event.target instanceof HTMLInputElement && event.target.type === "search";
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing) {
    event.preventDefault();
    undo();
  }
}

listen();
refresh();
document.documentElement.dataset.ready = "true";
