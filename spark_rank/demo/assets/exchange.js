// Ratings as CSV that `spark-rank ingest` takes, models as JSON that `from_params` takes.

// Returns a cell of CSV, in quotes where it needs them.
function cell(text) {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// Returns the shortest number that single precision, in which ratings are stored, reads as the same.
function ratingText(rating) {
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(rating.toPrecision(digits));
    if (Math.fround(short) === Math.fround(rating)) return String(short);
  }
  return String(rating);
}

// Returns ratings as CSV with a header; `user` is the id of the person.
function ratingsAsCSV(run, items, ratings, user) {
  const lines = items.map((item, i) => [user, run.ids[item], ratingText(ratings[i])]);
  return [["user", "item", "rating"], ...lines].map((row) => `${row.map(cell).join(",")}\n`).join("");
}

// Returns the cells of CSV, row by row, without blank rows.
function cellsOf(text) {
  const rows = [[""]];
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const row = rows[rows.length - 1], sign = text[i];
    if (quoted && sign === '"' && text[i + 1] === '"') {
      row[row.length - 1] += '"';
      i++;
    } else if (sign === '"') {
      quoted = !quoted;
    } else if (!quoted && sign === ",") {
      row.push("");
    } else if (!quoted && (sign === "\n" || sign === "\r")) {
      rows.push([""]);
    } else {
      row[row.length - 1] += sign;
    }
  }
  return rows.filter((row) => row.length > 1 || row[0].trim() !== "");
}

// Returns the ratings in CSV with columns user, item and rating: those of the first user, of items
// that the run has and on its scale; `skipped` counts all other rows.
function ratingsFromCSV(run, text) {
  const rows = cellsOf(text.replace(/^\ufeff/, ""));
  const names = (rows.shift() ?? []).map((name) => name.trim().toLowerCase());
  const [user, item, rating] = ["user", "item", "rating"].map((name) => names.indexOf(name));
  if (item < 0 || rating < 0) throw new Error("its first line must name the columns item and rating");
  const found = new Map();
  let skipped = 0;
  for (const row of rows) {
    const place = run.place.get(row[item]), value = ratingOf(run.scale, row[rating]);
    const own = user < 0 || row[user] === rows[0][user];
    if (own && place !== undefined && value !== null) found.set(place, value);
    else skipped++;
  }
  return {items: [...found.keys()], ratings: [...found.values()], skipped};
}

// Returns the rating of the scale that a text names; null if there is none.
function ratingOf(scale, text) {
  const value = text === undefined || text.trim() === "" ? NaN : Number(text);
  if (scale.free) return value >= scale.low && value <= scale.high ? value : null;
  return scale.levels.find((level) => level === Math.fround(value)) ?? null;
}

// Returns the model as `to_params` of the learner's class does, with what the scores start from.
function modelAsJSON(run, model) {
  const learned = model.kind === "mprank" ? mprankParams(run, model) : prankParams(run, model);
  const ratings = Object.fromEntries(model.items.map((item, i) => [run.ids[item], model.ratings[i]]));
  const start = {learner: model.kind, run: run.run, expected: [...model.expected], ratings};
  return JSON.stringify({...learned, demonstration: start}, null, 1);
}

function mprankParams(run, model) {
  const squares = model.residuals.reduce((sum, residual) => sum + residual * residual, 0);
  const ratings = model.ratings.map(Math.fround);
  return {
    ...run.params, coef_: [...model.coef], dual_coef_: null, support_: null,
    intercept_: model.intercept, gamma_: null,
    objective_: dot(model.coef, 0, model.coef, 0, run.width) + squares / model.ridge,
    y_min_: Math.min(...ratings), y_max_: Math.max(...ratings), n_rounds_: 0, cost_path_: [],
  };
}

function prankParams(run, model) {
  const loss = model.rounds.reduce((sum, round) => sum + Math.abs(round.predicted - round.rank), 0);
  return {
    ...run.prank, epochs: model.passes, coef_: [...model.coef], thresholds_: model.thresholds,
    n_rounds_: model.rounds.length, total_loss_: loss,
  };
}

// Returns a model that scores, from the text of `modelAsJSON` or of `to_params`.
function modelFromJSON(run, text) {
  const stored = JSON.parse(text);
  const kind = Array.isArray(stored.thresholds_) ? "prank" : "mprank";
  const width = kind === "prank" ? run.width + 1 : run.width;
  const numbers = (values, size) => Array.isArray(values) && values.length === size &&
    values.every(Number.isFinite);
  if (!numbers(stored.coef_, width)) {
    throw new Error(`it has no coef_ of ${width} numbers: it is no model of this run's features`);
  }
  if (kind === "prank" ? !numbers(stored.thresholds_, run.scale.cuts.length)
    : !Number.isFinite(stored.intercept_)) {
    throw new Error("its constant or thresholds are not those of this run's scale");
  }
  const expected = stored.demonstration?.expected;
  if (expected !== undefined && !numbers(expected, run.width)) {
    throw new Error(`its expected weights are not ${run.width} numbers`);
  }
  return {
    kind, coef: Float64Array.from(stored.coef_), intercept: stored.intercept_,
    thresholds: stored.thresholds_, imported: true,
    expected: expected ? Float64Array.from(expected) : new Float64Array(run.width),
  };
}
