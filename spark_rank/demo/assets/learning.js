// Step 3: the model in words, and PRank's rounds.

function showLearned() {
  const model = view.model, drawn = model?.kind === "prank" && !model.imported;
  byId("changed").hidden = !(view.changed && steps.now.ratings.length > 0);
  byId("learn").disabled = steps.now.ratings.length === 0;
  byId("results-of").hidden = model === null;
  byId("no-model").hidden = model !== null || !byId("unsolved").hidden;
  byId("jump-list").hidden = model === null;
  byId("save-model").disabled = model === null || model.imported === true;
  byId("prank").hidden = !drawn;
  if (model === null) return;
  byId("model").textContent = modelText(model);
  if (drawn) showRounds();
  showAgain();
  showUnseen();
}

function modelText(model) {
  if (model.imported) {
    return `A model of ${model.kind === "mprank" ? "MPRank" : "PRank"} from a file scores the list ` +
      "below. Press “Learn” to go back to your ratings.";
  }
  const count = counted(model.items.length, "rating", "ratings");
  if (model.kind === "mprank" && !model.learned) {
    return `${count}, or all the same: the list is what is expected of somebody who has rated ` +
      `these ${run.noun}. MPRank learns from ${run.minRatings} different ratings on.`;
  }
  if (model.kind === "mprank") {
    return `MPRank solved one system of ${run.width} weights for ${count}. ${orderText(model)}`;
  }
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
  if (pairs === 0) return "";
  const stand = wrong === 0 ? "none stands" : wrong === 1 ? "1 stands" : `${wrong} stand`;
  return `Of ${counted(pairs, "pair", "pairs")} with different ratings, ${stand} in the wrong order.`;
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
  byId("rounds").replaceChildren(...model.rounds.map(roundRow));
}

function roundRow(round, number) {
  const off = Math.abs(round.predicted - round.rank);
  return tableRow([
    String(number + 1), `${round.example + 1} ${nameOf(view.model.items[round.example])}`,
    String(round.rank), String(round.predicted), off === 0 ? "✓ right" : `✗ off by ${off}`,
    round.moves.map((tau) => (tau === 0 ? "0" : signedWhole(tau))).join(" "),
  ], 0, {"aria-current": number === view.round ? "true" : false});
}

// Returns the last round that moved the rule; the first one if none did.
function lastUpdate(model) {
  return Math.max(0, model.rounds.findLastIndex((round) => round.predicted !== round.rank));
}

function showRound(number) {
  view.round = Math.max(0, Math.min(number, view.model.rounds.length - 1));
  showRounds();
}
