// The run's numbers, read from the text that the page holds.

// Returns the bytes of a text in base 64.
function bytesOf(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Returns little-endian whole numbers of 16 bits, times the scale of their column.
function dequantised(stored) {
  const bytes = new DataView(bytesOf(stored.values).buffer);
  const width = stored.scale.length;
  const numbers = new Float64Array(bytes.byteLength / 2);
  for (let i = 0; i < numbers.length; i++) {
    numbers[i] = bytes.getInt16(2 * i, true) * stored.scale[i % width];
  }
  return numbers;
}

// Returns little-endian numbers of 64 bits.
function doubles(text) {
  const bytes = new DataView(bytesOf(text).buffer);
  return Float64Array.from({length: bytes.byteLength / 8}, (_, i) => bytes.getFloat64(8 * i, true));
}

// Returns the run: features, offset and prior as numbers, and how often each item is listed.
function readRun(text) {
  const stored = JSON.parse(text);
  const run = {
    ...stored,
    size: stored.ids.length,
    width: stored.features.width,
    features: dequantised(stored.features),
    offset: doubles(stored.offset),
    prior: stored.prior && {...stored.prior, rows: dequantised(stored.prior)},
    choices: stored.choices && {
      beta: stored.choices.beta,
      decoder: dequantised(stored.choices.decoder),
      encoder: {...stored.choices.encoder, rows: dequantised(stored.choices.encoder)},
    },
    place: new Map(stored.ids.map((id, item) => [id, item])),
  };
  const inOrder = Array.from(run.ids.keys()).sort((a, b) => (run.ids[a] < run.ids[b] ? -1 : 1));
  // ties between scores go by the id
  run.byId = new Int32Array(run.size);
  inOrder.forEach((item, place) => { run.byId[item] = place; });
  return run;
}

// Returns what to call an item.
function titleOf(run, item) {
  return run.titles[item] ?? `item ${run.ids[item]}`;
}

// Returns the rank of a rating, or of a score on the rating scale, from 1.
function rankOf(scale, rating) {
  let rank = 1;
  for (const cut of scale.cuts) if (rating >= cut) rank++;
  return rank;
}
