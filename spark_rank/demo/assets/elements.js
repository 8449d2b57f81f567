// Elements of the page. Text is always set as text, so that no title becomes markup.

const SVG = "http://www.w3.org/2000/svg";

// Returns an element with attributes and children; functions are listeners, false leaves out.
function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function svgElement(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

// Returns a row of a table; the cell of the column `head` is its header.
function tableRow(cells, head, attributes = {}) {
  return element("tr", attributes, ...cells.map((cell, column) =>
    (column === head ? element("th", {scope: "row"}, cell) : element("td", {}, cell))));
}

function byId(id) {
  return document.getElementById(id);
}

// Returns text that only screen readers read.
function unseen(text) {
  return element("span", {class: "unseen"}, text);
}

// Returns a number with few digits, and a real minus sign.
function shown(number, digits = 2) {
  return number.toFixed(digits).replace(/^-(?=0\.?0*$)/, "").replace("-", "−");
}

// Returns a rating as people write it: 4, 3.5, −2.25.
function shownRating(rating) {
  return String(Math.round(rating * 100) / 100).replace("-", "−");
}

function signed(number) {
  return number < 0 ? shown(number) : `+${shown(number)}`;
}

// Returns a count with its noun, which is a plural.
function counted(count, one, many) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
