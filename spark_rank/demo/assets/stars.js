// How a rating is given: stars for scales of a few levels, a slider for all others. Stars are radio
// buttons, so that mouse, touch, keys and screen readers all have what they know.

const STAR = "M12 1.8l3.1 6.6 7.1.9-5.2 5 1.4 7.1L12 17.9l-6.4 3.5L7 14.3l-5.2-5 7.1-.9z";
const MOST_STARS = 11;

// Returns for every level which part of a star shows it; null if stars cannot show the scale.
function starsOf(scale) {
  const halves = scale.levels.map((level) => Math.round(2 * level));
  const even = scale.levels.every((level, i) => Math.abs(2 * level - halves[i]) < 1e-6);
  if (!scale.free && even && scale.low > 0 && scale.high <= 10) {
    return scale.levels.map((level, i) => {
      const whole = Math.ceil(level), before = i > 0 ? scale.levels[i - 1] : 0;
      const from = Math.max(before, whole - 1) - (whole - 1);
      return {level, from, to: level - (whole - 1)};
    });
  }
  if (scale.free || scale.levels.length > MOST_STARS) return null;
  return scale.levels.map((level) => ({level, from: 0, to: 1}));
}

// Returns the control that rates an item: its element, and `show` to show another rating.
function ratingControl(scale, title, name, rate) {
  const stars = starsOf(scale);
  return stars === null ? sliderControl(scale, title, rate) : starControl(stars, title, name, rate);
}

function starControl(stars, title, name, rate) {
  const inputs = [], labels = [], output = element("output", {class: "value"});
  const field = element("fieldset", {class: "stars"}, element("legend", {class: "unseen"},
    `Your rating of ${title}`));
  stars.forEach(({level, from, to}, i) => {
    const id = `${name}-${i}`;
    const input = element("input", {
      type: "radio", class: "unseen", name, id, value: level, change: () => rate(level),
    });
    const star = svgElement("svg", {
      viewBox: `${24 * from} 0 ${24 * (to - from)} 24`, "aria-hidden": "true",
      class: to - from < 1 ? "part" : "whole",
    }, svgElement("path", {d: STAR}));
    const label = element("label", {for: id, title: shownRating(level)}, star,
      unseen(shownRating(level)));
    inputs.push(input);
    labels.push(label);
    field.append(input, label);
  });
  field.append(output);
  field.addEventListener("keydown", (event) => {
    const i = stars.findIndex(({level}) => String(level) === event.key);
    if (i < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    inputs[i].focus();
    rate(stars[i].level);
  });
  const show = (rating) => {
    const chosen = stars.findIndex(({level}) => level === rating);
    inputs.forEach((input, i) => { input.checked = i === chosen; });
    labels.forEach((label, i) => label.classList.toggle("on", i <= chosen));
    output.textContent = rating === null ? "not rated" : shownRating(rating);
  };
  const focus = () => (inputs.find((input) => input.checked) ?? inputs[0]).focus();
  return {element: field, show, focus};
}

function sliderControl(scale, title, rate) {
  const step = scale.free ? (scale.high - scale.low) / 200 : 1;
  const [least, most] = scale.free ? [scale.low, scale.high] : [0, scale.levels.length - 1];
  const ratingAt = (value) => scale.free ? Math.round(value * 1e4) / 1e4 : scale.levels[value];
  const valueOf = (rating) => scale.free ? rating : scale.levels.indexOf(rating);
  const output = element("output", {class: "value"});
  const slider = element("input", {
    type: "range", min: least, max: most, step, "aria-label": `Your rating of ${title}`,
    input: () => tell(ratingAt(Number(slider.value))),
    change: () => rate(ratingAt(Number(slider.value))),
  });
  const sure = element("button", {type: "button", click: () => rate(ratingAt(Number(slider.value)))},
    "Rate", unseen(` ${title}`));
  const tell = (rating) => {
    const text = rating === null ? "not rated" : shownRating(rating);
    slider.setAttribute("aria-valuetext", text);
    output.textContent = text;
  };
  const show = (rating) => {
    if (rating !== null) slider.value = valueOf(rating);
    tell(rating);
    sure.hidden = rating !== null;
  };
  const box = element("div", {class: "slider"}, slider, output, sure);
  return {element: box, show, focus: () => slider.focus()};
}
