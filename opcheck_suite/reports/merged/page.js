"use strict";
const by = (id) => document.getElementById(id);
const data = JSON.parse(by("data").textContent);
const matrix = by("matrix"), told = by("told"), what = by("what");
const rows = Array.from(matrix.tBodies[0].rows);
const heads = Array.from(matrix.tHead.rows[0].cells).slice(1);
const columns = Array.from(matrix.querySelectorAll("col")).slice(1);
const names = data.rows.map((name) => name.toLowerCase());
const hidden = heads.map(() => false);
const made = new Set(); // numbers of the rows that have cells
let at = { row: 0, check: 0 };

// Cells are made when their row comes into view: tens of thousands at once would keep a reader waiting.
function make(number) {
  if (made.has(number) || heads.length === 0) return;
  made.add(number);
  const row = rows[number];
  row.lastElementChild.remove();
  heads.forEach((head, check) => {
    const cell = row.insertCell();
    cell.className = data.kinds[number][check].trim();
    if (head.classList.contains("first")) cell.classList.add("first");
    fill(cell, data.cells[number].map((column) => column[check]));
    cell.hidden = hidden[check];
  });
}

// One character where environments agree, otherwise one for each, of which those that are bad or odd stand out.
function fill(cell, marks) {
  if (marks.every((mark) => mark === marks[0])) {
    cell.textContent = marks[0].trim();
    return;
  }
  cell.classList.add("mixed");
  for (const mark of marks) {
    if (data.signs[mark] === "b" || data.signs[mark] === "o") add(cell, "span", mark, data.signs[mark]);
    else cell.append(mark);
  }
}

function cellOf(row, check) {
  make(row);
  return rows[row].cells[check + 1];
}

function filter() {
  const bad = by("bad").checked, family = by("family").value, text = by("text").value.toLowerCase();
  const ofFamily = heads.map((head) => family === "" || head.dataset.f === family);
  const useful = heads.map(() => false);
  let count = 0;
  rows.forEach((row, number) => {
    let found = names[number].includes(text);
    if (found && bad) {
      found = false;
      heads.forEach((_, check) => {
        if (data.kinds[number][check] === "b" && ofFamily[check]) found = useful[check] = true;
      });
    }
    row.hidden = !found;
    count += found ? 1 : 0;
  });
  heads.forEach((head, check) => {
    const hide = !ofFamily[check] || (bad && !useful[check]);
    if (hide === hidden[check]) return;
    hidden[check] = head.hidden = columns[check].hidden = hide;
    for (const number of made) rows[number].cells[check + 1].hidden = hide;
  });
  by("shown").textContent = count + " of " + rows.length + " ops";
  by("none").hidden = count > 0 || rows.length === 0;
  reachable();
}

// The Tab key reaches one cell of the table: the last one chosen, or else the first that is shown.
function reachable() {
  let row = at.row, check = at.check;
  if (rows.length === 0 || heads.length === 0) return;
  if (rows[row].hidden || hidden[check]) {
    row = rows.findIndex((r) => !r.hidden);
    check = hidden.indexOf(false);
  }
  if (row >= 0 && check >= 0) mark(row, check);
}

function mark(row, check) {
  const before = made.has(at.row) ? cellOf(at.row, at.check) : null;
  if (before !== null) {
    before.removeAttribute("tabindex");
    before.classList.remove("at");
  }
  at = { row, check };
  const cell = cellOf(row, check);
  cell.tabIndex = 0;
  cell.setAttribute("aria-label", summary(row, check));
  return cell;
}

function summary(row, check) {
  const outcomes = data.columns.map((_, n) => data.outcomes[data.cells[row][n][check]] || "not run");
  const same = outcomes.every((outcome) => outcome === outcomes[0]);
  const list = same ? outcomes[0] : outcomes.map((outcome, n) => data.columns[n].name + ": " + outcome).join("; ");
  return data.rows[row] + "  " + data.checks[check].id + ": " + list;
}

function choose(row, check) {
  const cell = mark(row, check);
  cell.focus();
  if (!told.hidden) show(row, check);
}

function add(parent, name, text, kind) {
  const element = document.createElement(name);
  element.textContent = text;
  if (kind) element.className = kind;
  parent.append(element);
  return element;
}

function text(number) {
  const found = data.texts[number];
  return data.cut.includes(number) ? found + "... (cut; the JSON form has all)" : found;
}

// Environments in which a cell tells the same are one group.
function groups(row, check) {
  const found = new Map();
  const told = data.findings[row + ":" + check] || [];
  data.columns.forEach((column, n) => {
    const sign = data.cells[row][n][check];
    const [, sample, message] = told.find((finding) => finding[0] === n) || [n, -1, -1];
    const key = [sign, sample, message].join(" ");
    if (!found.has(key)) found.set(key, { sign, sample, message, of: [] });
    found.get(key).of.push(column);
  });
  const rank = (group) => "boig ".indexOf(data.signs[group.sign] || " ");
  return Array.from(found.values()).sort((one, other) => rank(one) - rank(other));
}

function show(row, check) {
  what.replaceChildren();
  add(what, "h2", data.rows[row] + "  " + data.checks[check].id);
  let wrong = false;
  for (const group of groups(row, check)) {
    const outcome = data.outcomes[group.sign];
    const head = add(what, "h3", "");
    add(head, "span", outcome || "not part of the run", data.signs[group.sign]);
    head.append(" ");
    add(head, "span", group.of.map((column) => column.name).join("; "));
    if (group.message < 0) continue;
    if (text(group.sample) !== "") add(what, "p", "sample " + text(group.sample));
    add(what, "pre", text(group.message));
    if (data.signs[group.sign] === "i" || data.signs[group.sign] === "g") continue;
    wrong = true;
    const rest = " --ops " + data.quoted[row] + " --checks " + data.checks[check].id;
    add(what, "p", "run it again:", "label");
    for (const line of new Set(group.of.map((column) => column.rerun + rest + column.rest))) add(what, "pre", line, "rerun");
  }
  if (wrong && data.checks[check].fix !== "") {
    add(what, "p", "how to fix it:", "label");
    add(what, "p", data.checks[check].fix, "fix");
  }
  matrix.querySelector("td.at")?.classList.remove("at");
  const cell = cellOf(row, check);
  cell.classList.add("at");
  told.hidden = false;
  told.scrollTop = 0;
  document.documentElement.classList.add("open");
  cell.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function close() {
  if (told.hidden) return;
  told.hidden = true;
  document.documentElement.classList.remove("open");
  const cell = cellOf(at.row, at.check);
  cell.classList.remove("at");
  if (!rows[at.row].hidden && !hidden[at.check]) cell.focus();
}

function step(from, by, open) {
  let n = from + by;
  while (n >= 0 && n < open.length && !open[n]) n += by;
  return n >= 0 && n < open.length ? n : from;
}

function move(key, row, check) {
  const openRows = rows.map((r) => !r.hidden), openChecks = hidden.map((h) => !h);
  switch (key) {
    case "ArrowRight": return [row, step(check, 1, openChecks)];
    case "ArrowLeft": return [row, step(check, -1, openChecks)];
    case "ArrowDown": return [step(row, 1, openRows), check];
    case "ArrowUp": return [step(row, -1, openRows), check];
    case "Home": return [row, openChecks.indexOf(true)];
    case "End": return [row, openChecks.lastIndexOf(true)];
    default: return null;
  }
}

function place(target) {
  const cell = target.closest("td");
  return cell === null || cell.classList.contains("plain")
    ? null : [cell.parentNode.sectionRowIndex, cell.cellIndex - 1];
}

matrix.addEventListener("click", (event) => {
  const where = place(event.target);
  if (where !== null) { choose(...where); show(...where); }
});
matrix.addEventListener("mouseover", (event) => {
  const where = place(event.target);
  if (where !== null) event.target.closest("td").title = summary(...where);
});
matrix.addEventListener("keydown", (event) => {
  const where = place(event.target);
  if (where === null || event.ctrlKey || event.altKey || event.metaKey) return;
  const to = move(event.key, ...where);
  if (event.key === "Enter" || event.key === " ") show(...where);
  else if (to !== null) choose(...to);
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !told.hidden) close(); });
by("close").addEventListener("click", close);
for (const id of ["bad", "family", "text"]) by(id).addEventListener("input", filter);
document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());

// what stays in sight above and beside the cells must not lie over one that is scrolled to
by("scroll").style.scrollPadding =
  (matrix.tHead.offsetHeight + 4) + "px 4px 4px " + (heads.length > 0 ? matrix.rows[0].cells[0].offsetWidth + 4 : 0) + "px";
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    make(rows.indexOf(entry.target));
    seen.unobserve(entry.target);
  }
}, { root: by("scroll"), rootMargin: "300px 0px" });
for (const row of rows) seen.observe(row);
reachable();
