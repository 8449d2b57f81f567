// Step 2: the chosen items with their stars.

const rows = new Map();  // item → its row

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
  const list = byId("rated");
  chosen.forEach((item, i) => {
    const row = rows.get(item).element;
    // a row that stays in its place keeps the focus
    if (list.children[i] !== row) list.insertBefore(row, list.children[i] ?? null);
  });
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
  const title = element("span", {class: "title"}, nameOf(item));
  return {element: element("li", {}, title, control.element, remove), control};
}

// Removes an item; the focus goes to the next one.
function removeRow(item) {
  const place = steps.now.chosen.indexOf(item);
  take(without(steps.now, item), `${nameOf(item)} is removed.`);
  const next = steps.now.chosen[Math.min(place, steps.now.chosen.length - 1)];
  if (next === undefined) byId("search").focus();
  else rows.get(next).control.focus();
}
