// Step 1: search and proposals.

const SHOWN = 6;

// Returns the items that are neither to be found nor proposed again.
function excluded() {
  return new Set([...steps.now.chosen, ...steps.now.unknown]);
}

function choiceButton(item) {
  return element("li", {}, element("button", {
    type: "button", class: "choice", click: (event) => choose(item, event.detail === 0),
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
  const telling = orNull(() => informative(run, moments, rated, out, SHOWN)) ?? [];
  byId("popular").replaceChildren(...popular.map(choiceButton));
  byId("informative").replaceChildren(...telling.map(choiceButton));
  view.proposed = [...popular, ...telling];
  byId("others").disabled = view.proposed.length === 0;
}
