// Pictures: PRank's line with its thresholds and the moves of a round, and small bars of scores.

const LINE = {width: 640, left: 14, right: 626, top: 38, bottom: 92, row: 24, letter: 6.5};

// Draws a round into an SVG element: items on the line w·x, thresholds as bars across it, and what
// the round moved as arrows.
function drawRound(svg, model, number) {
  const round = model.rounds[number];
  const scores = model.rows.map((row) => dot(row, 0, round.coefAfter, 0, row.length));
  const at = placeOn([...scores, round.score], [...round.before, ...round.after]);
  const points = stacked(scores.map((score, example) => ({example, x: at(score)})));
  const height = LINE.bottom + LINE.row * (1 + Math.max(0, ...points.map((point) => point.row)));
  svg.setAttribute("viewBox", `0 0 ${LINE.width} ${height + 8}`);
  svg.replaceChildren(
    ...zones(round.after, at, height), ...bars(round, at, height), ...shiftOf(round, at),
    ...points.map((point) => pointMark(model, round, point)),
  );
  svg.setAttribute("aria-label", roundText(model, number, (item) => `item ${item + 1}`));
}

// Returns where on the picture a number of the line is: even around the thresholds, closer and closer
// together far from them, so that far items leave room for the ranks.
function placeOn(scores, thresholds) {
  const least = Math.min(...thresholds), most = Math.max(...thresholds);
  const middle = (least + most) / 2, reach = Math.max(1.5, most - least);
  const bent = (value) => Math.asinh((value - middle) / reach);
  const ends = [...scores, least - 0.7 * reach, most + 0.7 * reach].map(bent);
  const first = Math.min(...ends), last = Math.max(...ends), pad = 0.04 * (last - first);
  const scale = (LINE.right - LINE.left) / (last - first + 2 * pad);
  return (value) => LINE.left + (bent(value) - first + pad) * scale;
}

// Gives every point a row, so that none covers another.
function stacked(points) {
  const ends = [];
  for (const point of [...points].sort((a, b) => a.x - b.x)) {
    let row = ends.findIndex((end) => point.x - end >= LINE.row);
    if (row < 0) row = ends.length;
    ends[row] = point.x;
    point.row = row;
  }
  return points;
}

// Returns the ranks as fields between the thresholds.
function zones(thresholds, at, height) {
  const edges = [LINE.left, ...thresholds.map(at), LINE.right];
  return edges.slice(1).flatMap((end, r) => {
    const width = end - edges[r];
    if (width < 1) return [];
    const field = svgElement("rect", {
      x: edges[r], y: LINE.top, width, height: height - LINE.top, class: r % 2 ? "odd" : "even",
    });
    const name = width > 46 ? `rank ${r + 1}` : width > 14 ? String(r + 1) : "";
    return [field, svgElement("text", {x: (edges[r] + end) / 2, y: 33, class: "zone"}, name)];
  });
}

// Returns the thresholds; one that has moved has its old place and an arrow.
function bars(round, at, height) {
  const marks = [];
  const named = new Map();
  round.after.forEach((threshold, r) => {
    const x = at(threshold), old = at(round.before[r]);
    if (round.moves[r] !== 0) {
      const y = LINE.top + 12 + 6 * (r % 4);
      marks.push(svgElement("line", {x1: old, x2: old, y1: LINE.top, y2: height, class: "old"}));
      marks.push(...arrow(old, x, y));
    }
    marks.push(svgElement("line", {x1: x, x2: x, y1: LINE.top, y2: height, class: "cut"}));
    named.set(threshold, [...(named.get(threshold) ?? []), r + 1]);
  });
  return [...marks, ...names(named, at)];
}

// Returns the names of thresholds, in two rows where they are close; one without room has none.
function names(named, at) {
  const ends = [-Infinity, -Infinity], marks = [];
  for (const [threshold, numbers] of named) {
    const first = numbers[0], last = numbers[numbers.length - 1], x = at(threshold);
    const name = first === last ? `b${first}` : `b${first}–${last}`;
    const half = LINE.letter * name.length / 2, row = ends.findIndex((end) => x - half > end);
    if (row < 0) continue;
    ends[row] = x + half;
    marks.push(svgElement("text", {x, y: 20 - 11 * row, class: "name"}, name));
  }
  return marks;
}

// Returns how the round moved its own item on the line.
function shiftOf(round, at) {
  if (round.amount === 0) return [];
  return arrow(at(round.score), at(round.moved), LINE.bottom - 14);
}

function arrow(from, to, y) {
  if (Math.abs(to - from) < 1) return [];
  const back = to > from ? -5 : 5;
  return [
    svgElement("line", {x1: from, x2: to, y1: y, y2: y, class: "arrow"}),
    svgElement("path", {d: `M${to} ${y}l${back} -3v6z`, class: "tip"}),
  ];
}

// Returns an item: a disc where the rule now has its rank, a hollow diamond where it has not.
function pointMark(model, round, {example, x, row}) {
  const y = LINE.bottom + LINE.row * row + 8;
  const score = dot(model.rows[example], 0, round.coefAfter, 0, model.rows[example].length);
  const right = predictedRank(score, round.after) === model.ranks[example];
  const own = example === round.example ? " own" : "";
  const shape = right
    ? svgElement("circle", {cx: x, cy: y, r: 9.5, class: `right${own}`})
    : svgElement("path", {d: `M${x} ${y - 12}l12 12l-12 12l-12 -12z`, class: `wrong${own}`});
  return svgElement("g", {}, shape,
    svgElement("text", {x, y: y + 3.5, class: right ? "inside" : "outside"}, String(example + 1)));
}

// Returns a round in words.
function roundText(model, number, nameOf) {
  const round = model.rounds[number], ordered = round.after.map((b) => shownRating(b)).join(" ≤ ");
  const seen = `Round ${number + 1}, ${nameOf(round.example)}: the line says ${shown(round.score)}, ` +
    `so rank ${round.predicted}; you said rank ${round.rank}.`;
  if (round.predicted === round.rank) return `${seen} Right: nothing moves. Thresholds: ${ordered}.`;
  const moved = round.moves.flatMap(
    (tau, r) => (tau === 0 ? [] : [`b${r + 1} by ${signedWhole(-tau)}`]));
  return `${seen} A mistake: ${moved.join(", ")}; w moves by ${signedWhole(round.amount)} times the ` +
    `item, which now stands at ${shown(round.moved)}. Thresholds keep their order: ${ordered}.`;
}

function signedWhole(number) {
  return number < 0 ? `−${-number}` : `+${number}`;
}

// Returns a bar of the scale with the interval and the score on it.
function scoreBar(scale, score, interval) {
  const at = (value) => {
    const share = (value - scale.low) / (scale.high - scale.low || 1);
    return 4 + 192 * Math.min(1, Math.max(0, share));
  };
  const band = interval === null ? [] : [svgElement("rect", {
    x: at(interval[0]), width: Math.max(1, at(interval[1]) - at(interval[0])), y: 3, height: 6,
    class: "band",
  })];
  return svgElement("svg", {viewBox: "0 0 200 12", class: "bar", "aria-hidden": "true"},
    svgElement("line", {x1: 4, x2: 196, y1: 6, y2: 6}), ...band,
    svgElement("circle", {cx: at(score), cy: 6, r: 3.5}));
}
