// PRank, round by round: items stand on a line that ordered thresholds cut into ranks.

// Returns min { r : score − b_r < 0 }, with b_k = ∞.
function predictedRank(score, thresholds) {
  let rank = 1;
  for (const threshold of thresholds) if (score >= threshold) rank++;
  return rank;
}

// Does one round: predicts, and if the rank is wrong moves the thresholds on the wrong side by one,
// b_r −= τ_r, and w by (Σ τ_r) x. `rule` is changed; returns what happened.
function prankRound(rule, x, rank) {
  const score = dot(rule.coef, 0, x, 0, x.length);
  const before = rule.thresholds.slice();
  const predicted = predictedRank(score, before);
  const moves = before.map(() => 0);
  if (predicted !== rank) {
    before.forEach((threshold, r) => {
      const side = rank <= r + 1 ? -1 : 1;
      if ((score - threshold) * side <= 0) moves[r] = side;
      rule.thresholds[r] -= moves[r];
    });
  }
  const amount = moves.reduce((sum, tau) => sum + tau, 0);
  if (amount !== 0) for (let k = 0; k < x.length; k++) rule.coef[k] += amount * x[k];
  const after = rule.thresholds.slice();
  const moved = dot(rule.coef, 0, x, 0, x.length);
  return {score, moved, rank, predicted, moves, amount, before, after};
}

// Returns the rule and all rounds of some passes over the rows.
function runPRank(rows, ranks, k, passes) {
  const width = rows.length > 0 ? rows[0].length : 0;
  const rule = {coef: new Float64Array(width), thresholds: new Array(k - 1).fill(0)};
  const rounds = [], dual = new Float64Array(rows.length);
  for (let pass = 0; pass < passes; pass++) {
    rows.forEach((row, example) => {
      const coef = rule.coef.slice();
      const round = prankRound(rule, row, ranks[example]);
      dual[example] += round.amount;
      rounds.push({...round, example, coefBefore: coef, coefAfter: rule.coef.slice()});
    });
  }
  return {rule, rounds, dual};
}

// Returns the features of an item as PRank gets them: the last one is the score before learning.
function prankRow(run, expected, item) {
  const row = new Float64Array(run.width + 1);
  row.set(run.features.subarray(item * run.width, (item + 1) * run.width));
  row[run.width] = priorScore(run, expected, item);
  return row;
}

// Returns PRank's model of a person who gave these ratings in this order, at least one.
function fitPRank(run, items, ratings, passes) {
  const expected = priorWeights(run, items);
  const rows = items.map((item) => prankRow(run, expected, item));
  const ranks = ratings.map((rating) => rankOf(run.scale, Math.fround(rating)));
  const {rule, rounds, dual} = runPRank(rows, ranks, run.scale.cuts.length + 1, passes);
  return {kind: "prank", items, ratings, ranks, expected, passes, rows, rounds, dual, ...rule};
}

// Returns w·x of every item.
function prankScores(run, model) {
  const scores = new Float64Array(run.size);
  for (let item = 0; item < run.size; item++) {
    const row = prankRow(run, model.expected, item);
    scores[item] = dot(row, 0, model.coef, 0, row.length);
  }
  return scores;
}

// Returns what every rated item adds to an item's score, by falling size.
function prankPulls(run, model, item) {
  const row = prankRow(run, model.expected, item);
  return model.items.map((rated, i) => ({
    item: rated,
    pull: model.dual[i] * dot(model.rows[i], 0, row, 0, row.length),
  })).sort((a, b) => Math.abs(b.pull) - Math.abs(a.pull));
}
