// Files that the person saves and opens.

function save(name, type, text) {
  const link = element("a", {download: name, href: URL.createObjectURL(new Blob([text], {type}))});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function saveRatings() {
  const items = steps.now.ratings.map(([item]) => item);
  const ratings = steps.now.ratings.map(([, rating]) => rating);
  save("ratings.csv", "text/csv", ratingsAsCSV(run, items, ratings, "me"));
}

function saveModel() {
  save(`${view.model.kind}.json`, "application/json", modelAsJSON(run, view.model));
}

async function openFile(event) {
  const file = event.target.files[0];
  event.target.value = "";
  if (!file) return;
  try {
    const text = await file.text();
    if (text.trimStart().startsWith("{")) openModel(text, file.name);
    else openRatings(text, file.name);
  } catch (error) {
    say(`${file.name} cannot be used: ${error.message}.`);
  }
}

function openRatings(text, name) {
  const found = ratingsFromCSV(run, text);
  let state = {...emptyState(), unknown: steps.now.unknown};
  found.items.forEach((item, i) => { state = withRating(state, item, found.ratings[i]); });
  const skipped = found.skipped === 0 ? ""
    : ` ${counted(found.skipped, "row", "rows")} left out: of another user, an item that this ` +
      "page lacks, or no rating of the scale.";
  take(state, `${counted(found.items.length, "rating", "ratings")} from ${name}.${skipped}`);
}

function openModel(text, name) {
  view.model = modelFromJSON(run, text);
  document.querySelector(`input[name=method][value=${view.model.kind}]`).checked = true;
  view.changed = false;
  score();
  showLearned();
  say(`The model of ${name} scores the list now.`);
}
