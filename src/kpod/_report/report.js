"use strict";
(() => {
const root = document.documentElement;
const $ = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
root.classList.add("scripted");

/* Light or dark: the reader's setting, until the button says otherwise. */
const theme = $("#theme");
const scheme = () => root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const other = () => (scheme() === "dark" ? "light" : "dark");
const nameTheme = () => { theme.textContent = other() === "dark" ? "Dark" : "Light"; theme.ariaLabel = `Switch to ${other()} colours`; };
theme.addEventListener("click", () => { root.dataset.theme = other(); nameTheme(); });
nameTheme();

/* Tables: a heading sorts, text from A, numbers from the largest; a second click turns that round. */
const compare = (a, b, sign) => {
  const missing = x => x === null || x === undefined || x === "" || Number.isNaN(x);
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
};
const turned = (head, isText) => {
  const first = isText ? "ascending" : "descending", second = isText ? "descending" : "ascending";
  const order = head.getAttribute("aria-sort") === first ? second : first;
  for (const sibling of head.parentNode.cells) sibling.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  return order === "ascending" ? 1 : -1;
};
for (const table of all("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, at) => $("button", head).addEventListener("click", () => {
    const sign = turned(head, at === 0);
    const value = row => (at === 0 ? row.cells[at].dataset.value : parseFloat(row.cells[at].dataset.value));
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort((a, b) => compare(value(a), value(b), sign)));
  }));
}

/* Long tables are folded; the button below unfolds them. */
for (const button of all("button.unfold")) {
  const table = document.getElementById(button.getAttribute("aria-controls")), whole = button.textContent;
  const fold = folded => {
    table.classList.toggle("folded", folded);
    button.setAttribute("aria-expanded", String(!folded));
    button.textContent = folded ? whole : "Show fewer";
  };
  button.addEventListener("click", () => fold(!table.classList.contains("folded")));
  fold(true);
}

/* Files to keep. */
const keep = (name, type, text) => {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
for (const figure of all("figure")) {
  const svg = $("svg", figure);
  if (!svg) continue;
  const button = make("button", { type: "button", className: "download", textContent: "Download picture" });
  button.addEventListener("click", () => {
    const copy = svg.cloneNode(true), style = getComputedStyle(root);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    // Variables of the page mean nothing outside it.
    const text = copy.outerHTML.replace(/var\((--[a-z]+)\)/g, (_, name) => resolved(style.getPropertyValue(name)));
    keep(`${figure.dataset.name || "picture"}.svg`, "image/svg+xml", text);
  });
  figure.append(button);
}
function resolved(colour) {
  const probe = make("span");
  probe.style.color = colour;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/* The rows. */
const source = $("#rows-data");
if (!source) return;
const data = JSON.parse(source.textContent);
const count = data.names.length, columns = data.columns, colours = data.colours;
const clusterName = m => `cluster ${m}`;
const rowName = i => (data.named ? data.names[i] : `row ${data.names[i]}`);
const plain = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });
const shown = (column, i) => {
  const value = column.values[i];
  if (value === null) return "–";
  return column.kind === "number" ? plain.format(value) : String(value);
};

/* Their points in the picture: one element for each, in the same order. */
const picture = $("#rows-picture"), svg = picture && $("svg", picture);
const points = svg ? [...new Set(data.clusters)].flatMap(m => all(`#rows-points-${m} :is(use, :not(defs) > path)`, svg)) : [];
const drawn = points.length > 0 && points.length === count;
const at = drawn ? points.map(p => p.getBBox()).map(box => [box.x + box.width / 2, box.y + box.height / 2]) : [];
const tip = $("#tip"), live = $("#live");
let here = -1;

function describe(i) {
  const lines = make("dl");
  const chosen = columns[Number(colourBy.value)];
  const said = [...(chosen ? [chosen] : []), ...columns.filter(c => c !== chosen)].slice(0, 9);
  for (const column of said) lines.append(make("dt", { textContent: column.name }), make("dd", { textContent: shown(column, i) }));
  return [make("b", { textContent: rowName(i) }), ` ${clusterName(data.clusters[i])}`, lines];
}
function point(i, aloud = false) {
  if (here >= 0 && drawn) points[here].classList.remove("here");
  here = i;
  tip.hidden = i < 0;
  if (i < 0) return;
  points[i].classList.add("here");
  tip.replaceChildren(...describe(i));
  const spot = points[i].getBoundingClientRect(), frame = picture.getBoundingClientRect();
  const left = Math.min(spot.left - frame.left + 14, frame.width - tip.offsetWidth - 4);
  tip.style.left = `${Math.max(0, left)}px`;
  const below = spot.top - frame.top + 14, room = Math.min(frame.bottom, innerHeight) - frame.top;
  tip.style.top = `${below + tip.offsetHeight > room ? Math.max(below - 22 - tip.offsetHeight, Math.max(0, -frame.top)) : below}px`;
  if (aloud) live.textContent = `${rowName(i)}, ${clusterName(data.clusters[i])}: ` + columns.slice(0, 4).map(c => `${c.name} ${shown(c, i)}`).join(", ");
}
function nearest(event) {
  const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  let best = -1, least = 14 ** 2;
  at.forEach(([x, y], i) => {
    const far = (x - spot.x) ** 2 + (y - spot.y) ** 2;
    if (far < least && !points[i].classList.contains("other")) [best, least] = [i, far];
  });
  return best;
}

/* Colours by column: numbers along a scale, words by how common they are. */
const colourBy = $("#colour-by"), legend = $("#colour-legend");
const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const NOTHING = "#8c959f";
const between = share => {
  const place = Math.min(Math.max(share, 0), 1) * (SCALE.length - 1), low = Math.min(Math.floor(place), SCALE.length - 2);
  return `rgb(${SCALE[low].map((from, c) => Math.round(from + (place - low) * (SCALE[low + 1][c] - from)))})`;
};
function paint() {
  const column = columns[Number(colourBy.value)];
  const original = colourBy.value === "";
  let colour = () => "", says = [];
  if (!original && column.kind !== "text" && column.kind !== "date") {
    const known = column.values.filter(v => v !== null).sort((a, b) => a - b);
    const low = known[Math.floor(0.05 * (known.length - 1))], high = known[Math.ceil(0.95 * (known.length - 1))];
    colour = v => (v === null ? NOTHING : between(high > low ? (v - low) / (high - low) : 0.5));
    const bar = make("span", { className: "scale" });
    bar.style.background = `linear-gradient(to right, ${SCALE.map(c => `rgb(${c})`).join(", ")})`;
    const ends = column.kind === "year" ? [String(low), String(high)] : [plain.format(low), plain.format(high)];
    says = known.length ? [make("span", { textContent: ends[0] }), bar, make("span", { textContent: ends[1] })] : [];
    if (known.length < count) says.push(chip(NOTHING, "missing"));
  } else if (!original) {
    const times = new Map();
    for (const v of column.values) if (v !== null) times.set(v, (times.get(v) || 0) + 1);
    const common = [...times].sort((a, b) => b[1] - a[1]).slice(0, colours.length).map(([v]) => v);
    const palette = new Map(common.map((v, i) => [v, colours[i]]));
    colour = v => palette.get(v) || NOTHING;
    says = common.map(v => chip(palette.get(v), v));
    if (times.size > common.length || column.values.includes(null)) says.push(chip(NOTHING, times.size > common.length ? "others" : "missing"));
  }
  points.forEach((p, i) => {
    p.style.fill = original ? p.dataset.fill : colour(column.values[i]);
    p.style.fillOpacity = original ? p.dataset.opacity : 0.85;
  });
  legend.replaceChildren(...says);
}
function chip(colour, text) {
  const swatch = make("span", { className: "dot" });
  swatch.style.background = colour;
  return make("span", { className: "chip" }, swatch, text);
}

if (drawn) {
  for (const p of points) { p.dataset.fill = p.style.fill; p.dataset.opacity = p.style.fillOpacity; }
  columns.forEach((column, j) => colourBy.append(make("option", { value: String(j), textContent: column.name })));
  colourBy.addEventListener("change", () => { paint(); point(here); });
  picture.addEventListener("pointermove", event => point(nearest(event)));
  picture.addEventListener("pointerleave", () => point(-1));
  picture.addEventListener("click", event => { const i = nearest(event); if (i >= 0) choose(data.clusters[i], i); });
  picture.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); point(((here < 0 && step < 0 ? 0 : here) + step + count) % count, true); }
    if (event.key === "Enter" && here >= 0) choose(data.clusters[here], here);
    if (event.key === "Escape") point(-1);
  });
  picture.addEventListener("blur", () => point(-1));
} else for (const element of all(".picture-controls")) element.remove();

/* Members: of one cluster or of all, searched and sorted. */
const PAGE = 10, SHOWN = 10;
const body = $("#member-table tbody"), heads = $("#member-table thead tr");
const search = $("#member-search"), said = $("#member-count"), more = $("#member-more");
let cluster = null, order = null, length = PAGE, sought = -1;
const sorters = [
  { name: data.named ? "name" : "row", text: true, value: i => (data.named ? data.names[i] : Number(data.names[i])) },
  { name: "cluster", value: i => data.clusters[i] },
  ...columns.slice(0, SHOWN).map(c => ({ name: c.name, text: c.kind === "text" || c.kind === "date", value: i => c.values[i], show: i => shown(c, i) })),
];
for (const sorter of sorters) {
  const button = make("button", { type: "button" }, ...sorter.name.split(/(?<=[_./])/).flatMap(part => [part, make("wbr")]));
  const head = make("th", { scope: "col" }, button);
  button.addEventListener("click", () => { order = [sorter, turned(head, sorter.text)]; members(); });
  heads.append(head);
}
const haystack = data.names.map((name, i) => [name, ...columns.filter(c => c.kind === "text").map(c => c.values[i])].join("\n").toLowerCase());
function found() {
  const words = search.value.trim().toLowerCase();
  const list = data.names.map((_, i) => i).filter(i => (cluster === null || data.clusters[i] === cluster) && haystack[i].includes(words));
  return order ? list.sort((a, b) => compare(order[0].value(a), order[0].value(b), order[1])) : list;
}
function members() {
  const list = found();
  body.replaceChildren(...list.slice(0, length).map(i => {
    const row = make("tr", {}, ...sorters.map((s, at) => make("td", { textContent: s.show ? s.show(i) : String(s.value(i)), className: at > 1 && s.text ? "words" : "" })));
    if (i === sought) row.className = "sought";
    return row;
  }));
  const of = cluster === null ? "" : ` of ${clusterName(cluster)}`;
  said.textContent = `${plain.format(list.length)} ${list.length === 1 ? "row" : "rows"}${of}`;
  more.hidden = list.length <= length;
  for (const button of all("#member-clusters button")) button.setAttribute("aria-pressed", String(button.value === String(cluster ?? "")));
  points.forEach((p, i) => p.classList.toggle("other", cluster !== null && data.clusters[i] !== cluster));
}
function choose(m, row = -1) {
  cluster = m;
  sought = row;
  search.value = "";
  order = row >= 0 ? [{ value: i => (i === row ? 0 : 1) }, 1] : null;
  length = PAGE;
  members();
  $("#members").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}
for (const button of all("#member-clusters button")) button.addEventListener("click", () => { cluster = button.value === "" ? null : Number(button.value); length = PAGE; members(); });
for (const link of all("a.members")) link.addEventListener("click", event => { event.preventDefault(); choose(Number(link.dataset.cluster)); $("#members h2").focus(); });
search.addEventListener("input", () => { length = PAGE; members(); });
more.addEventListener("click", () => { length += 10 * PAGE; members(); });
$("#member-download").addEventListener("click", () => {
  const cell = value => { const text = value === null ? "" : String(value); return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  const lines = [[sorters[0].name, "cluster", ...columns.map(c => c.name)], ...found().map(i => [data.names[i], data.clusters[i], ...columns.map(c => c.values[i])])];
  keep(cluster === null ? "rows.csv" : `cluster-${cluster}.csv`, "text/csv", lines.map(line => line.map(cell).join(",")).join("\r\n") + "\r\n");
});
members();
})();
