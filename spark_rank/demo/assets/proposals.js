// Which rating would tell most: the one after which the scores of all items that may be listed have
// the least posterior variance. How large the variance gets does not depend on the rating's value.

// proposed are only items that many people know; of wide features fewer, so that no answer is slow
const WELL_KNOWN = 200;
const WORK = 5e6;

// Returns Σ (x, 1)(x, 1)ᵀ / n over the items that may be listed.
function secondMoments(run) {
  const size = run.width + 1, moments = new Float64Array(size * size);
  const row = new Float64Array(size);
  let n = 0;
  for (let item = 0; item < run.size; item++) {
    if (!run.listed[item]) continue;
    writeExtended(run, item, row);
    n++;
    for (let k = 0; k < size; k++) {
      for (let j = 0; j <= k; j++) moments[k * size + j] += row[k] * row[j];
    }
  }
  for (let k = 0; k < size; k++) {
    for (let j = 0; j <= k; j++) {
      moments[k * size + j] /= Math.max(n, 1);
      moments[j * size + k] = moments[k * size + j];
    }
  }
  return moments;
}

// Writes the features of an item and a 1, which stands for the constant.
function writeExtended(run, item, row) {
  row.set(run.features.subarray(item * run.width, (item + 1) * run.width));
  row[run.width] = 1;
}

// Returns the most rated items that are neither rated nor excluded.
function wellKnown(run, excluded, count) {
  const found = [];
  for (let item = 0; item < run.size && found.length < count; item++) {
    if (run.counts[item] > 0 && !excluded.has(item)) found.push(item);
  }
  return found;
}

// Returns the items to rate next, the most telling first: each is the best after all before it.
function informative(run, moments, rated, excluded, count) {
  const most = Math.min(WELL_KNOWN, Math.ceil(WORK / (run.width + 1) ** 2));
  const candidates = wellKnown(run, excluded, most);
  if (candidates.length === 0 || count === 0) return [];
  if (rated.length > 0) return telling(run, moments, rated, candidates, count);
  // without any rating nothing is known of the person's level: the item nearest to all others
  const first = nearestToAll(run, moments, candidates);
  const others = candidates.filter((item) => item !== first);
  return [first, ...telling(run, moments, [first], others, count - 1)];
}

// Returns the candidate with the least mean squared distance to the items that may be listed.
function nearestToAll(run, moments, candidates) {
  const size = run.width + 1, mean = moments.subarray(run.width * size, run.width * size + size);
  let best = candidates[0], least = Infinity;
  for (const item of candidates) {
    let distance = 0;
    for (let k = 0; k < run.width; k++) {
      distance += (run.features[item * run.width + k] - mean[k]) ** 2;
    }
    if (distance < least) [best, least] = [item, distance];
  }
  return best;
}

// Returns Σ (x, 1)(x, 1)ᵀ over rated items plus the ridge, as a Cholesky factor.
function posteriorFactor(run, rated, ridge) {
  const size = run.width + 1, system = new Float64Array(size * size);
  const row = new Float64Array(size), none = new Float64Array(size);
  for (const item of rated) {
    writeExtended(run, item, row);
    addSquare(system, row, 0, 0, none, size);
  }
  for (let k = 0; k < run.width; k++) system[k * size + k] += ridge;
  return cholesky(system, size);
}

// Returns the candidates that reduce the mean variance most, one after the other.
//
// With P the posterior covariance and M the second moments, a rating of x reduces the mean variance
// by xᵀP M P x / (1 + xᵀP x), and P by P x xᵀP / (1 + xᵀP x).
function telling(run, moments, rated, candidates, count) {
  const size = run.width + 1, ridge = ridgeOf(run.params, rated.length + 1);
  const factor = posteriorFactor(run, rated, ridge);
  const left = candidates.map((item) => {
    const row = new Float64Array(size);
    writeExtended(run, item, row);
    const image = solveCholesky(factor, size, row.slice());
    return {
      item, row, image, variance: dot(row, 0, image, 0, size),
      weight: dot(image, 0, product(moments, size, image), 0, size),
    };
  });
  const chosen = [];
  while (chosen.length < count && left.length > 0) {
    let best = 0;
    left.forEach((each, i) => { if (gain(each) > gain(left[best])) best = i; });
    const [next] = left.splice(best, 1);
    chosen.push(next.item);
    const turned = product(moments, size, next.image);
    const own = dot(next.image, 0, turned, 0, size);
    for (const each of left) subtract(each, next, turned, own, size);
  }
  return chosen;
}

function gain(each) {
  return each.weight / (1 + each.variance);
}

// Takes into account that `next` will be rated.
function subtract(each, next, turned, own, size) {
  const shared = dot(each.row, 0, next.image, 0, size) / (1 + next.variance);
  each.weight += shared * (shared * own - 2 * dot(each.image, 0, turned, 0, size));
  each.variance -= shared * shared * (1 + next.variance);
  for (let k = 0; k < size; k++) each.image[k] -= shared * next.image[k];
}
