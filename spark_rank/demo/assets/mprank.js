// MPRank for one person: the fold-in of `Recommender.fold_in`. The ratings minus offset and prior
// are fitted by ridge regression with a free constant; one Cholesky factor does it all.

// Returns the prior weights of somebody who rated these items, whatever the ratings.
function priorWeights(run, items) {
  return run.prior === null ? new Float64Array(run.width) : expectedOf(run.prior, items);
}

// Returns Σ rows_j / √m + constant + logarithm · log m over m rated items.
function expectedOf({rows, constant, logarithm}, items) {
  const width = constant.length, sums = new Float64Array(width);
  for (const item of items) {
    for (let k = 0; k < width; k++) sums[k] += rows[item * width + k];
  }
  const size = Math.max(items.length, 1);
  return sums.map((sum, k) => sum / Math.sqrt(size) + constant[k] + logarithm[k] * Math.log(size));
}

// Returns every item's score, and how likely somebody is to choose it who rated these items: the
// order of the run's own lists.
function withChoices(run, scores, items) {
  const {beta, decoder, encoder} = run.choices, code = expectedOf(encoder, items);
  const width = code.length;
  return scores.map((score, item) => score + beta * dot(decoder, item * width, code, 0, width));
}

// Returns the score of an item before learning: its offset, and what is expected of the person.
function priorScore(run, expected, item) {
  return run.offset[item] + dot(run.features, item * run.width, expected, 0, run.width);
}

// Returns the ridge of a problem with m ratings.
function ridgeOf(params, m) {
  return (params.ridge === "per-example" ? 0.5 * m / params.C : 1 / params.C) + params.growth * m;
}

// Returns the features of some items, one after the other.
function rowsOf(run, items) {
  const rows = new Float64Array(items.length * run.width);
  items.forEach((item, i) => {
    rows.set(run.features.subarray(item * run.width, (item + 1) * run.width), i * run.width);
  });
  return rows;
}

// Returns the model of a person who gave these ratings, at least one.
//
// `coef` are the learned weights on top of the `expected` ones. `dual` has a coefficient for every
// rated item: coef = Σ dual_j x_j. Too few ratings, or equal ones, teach the constant alone.
function fitMPRank(run, items, ratings) {
  const m = items.length, width = run.width;
  const expected = priorWeights(run, items), rows = rowsOf(run, items);
  const targets = items.map((item, i) => Math.fround(ratings[i]) - priorScore(run, expected, item));
  const mean = targets.reduce((sum, target) => sum + target, 0) / m;
  const centre = meanRow(rows, m, width), ridge = ridgeOf(run.params, m);
  const learned = m >= run.minRatings && ratings.some((rating) => rating !== ratings[0]);
  for (let i = 0; i < m; i++) {
    for (let k = 0; k < width; k++) rows[i * width + k] -= centre[k];
  }
  const system = new Float64Array(width * width), coef = new Float64Array(width);
  for (let k = 0; k < width; k++) system[k * width + k] = ridge;
  const dual = new Float64Array(m), residuals = targets.map((target) => mean - target);
  if (learned) {
    for (let i = 0; i < m; i++) addSquare(system, rows, i, targets[i] - mean, coef, width);
  }
  cholesky(system, width);
  if (learned) {
    solveCholesky(system, width, coef);
    for (let i = 0; i < m; i++) {
      residuals[i] += dot(rows, i * width, coef, 0, width);
      dual[i] = -residuals[i] / ridge;
    }
  }
  const intercept = mean - dot(centre, 0, coef, 0, width);
  return {
    kind: "mprank", items, ratings, expected, coef, intercept, learned, ridge, centre,
    factor: system, dual, residuals,
  };
}

// Adds x xᵀ of a row to the lower triangle of a matrix, and `target` times x to `right`.
function addSquare(matrix, rows, i, target, right, width) {
  const start = i * width;
  for (let k = 0; k < width; k++) {
    const x = rows[start + k];
    right[k] += target * x;
    for (let j = 0; j <= k; j++) matrix[k * width + j] += x * rows[start + j];
  }
}

// Returns the score of every item.
function scoresOf(run, model) {
  const scores = new Float64Array(run.size), weights = new Float64Array(run.width);
  for (let k = 0; k < run.width; k++) weights[k] = model.expected[k] + model.coef[k];
  for (let item = 0; item < run.size; item++) {
    scores[item] = run.offset[item] + model.intercept +
      dot(run.features, item * run.width, weights, 0, run.width);
  }
  return scores;
}

// Returns the posterior variance of an item's score, in units of the noise's variance:
// 1/m + (x − x̄)ᵀ (Σ (x_j − x̄)(x_j − x̄)ᵀ + ridge)⁻¹ (x − x̄).
function scoreVariance(run, model, item) {
  const away = new Float64Array(run.width);
  for (let k = 0; k < run.width; k++) {
    away[k] = run.features[item * run.width + k] - model.centre[k];
  }
  solveLower(model.factor, run.width, away);
  return 1 / model.items.length + dot(away, 0, away, 0, run.width);
}

// normal quantile of an interval that holds 90 %
const NINETY = 1.6448536269514722;

// Returns the interval that holds a score with 90 %; null where the run held no ratings out.
function scoreInterval(run, model, item, score) {
  if (run.noise === null || model.kind !== "mprank" || !model.items) return null;
  const half = NINETY * Math.sqrt(run.noise * scoreVariance(run, model, item));
  return [score - half, score + half];
}

// Returns what every rated item adds to an item's score, by falling size.
function pullsOf(run, model, item) {
  const width = run.width;
  return model.items.map((rated, i) => ({
    item: rated,
    pull: model.dual[i] * dot(run.features, rated * width, run.features, item * width, width),
  })).sort((a, b) => Math.abs(b.pull) - Math.abs(a.pull));
}
