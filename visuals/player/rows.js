// Drawing in place: a phase leaves most cells as they were, and only those that changed are
// styled, laid out and painted again.

// Remembers what it wrote, which a browser would spell differently; plain text needs no parser.
function write(node, markup) {
  if (node.written === markup) return;
  node.written = markup;
  if (/[<&]/.test(markup)) node.innerHTML = markup;
  else node.textContent = markup;
}

// The same for markup in several parts, each in a node of its own.
function writeParts(node, parts) {
  while (node.children.length > parts.length) node.lastChild.remove();
  while (node.children.length < parts.length) node.append(document.createElement("div"));
  parts.forEach((part, place) => write(node.children[place], part));
}

function restyle(node, look) {
  if (node.className !== look) node.className = look;
}

// A view is its rows, or one sentence that says why there are none.
function drawView(view, rows) {
  if (typeof rows === "string") return write(view, `<p class="none">${rows}</p>`);
  if (view.written) write(view, "");
  while (view.children.length > rows.length) view.lastChild.remove();
  while (view.children.length < rows.length) view.append(emptyRow(rows[view.children.length]));
  rows.forEach((row, place) => drawRow(view.children[place], row));
}

const CELL_TAGS = { slot: "i", chip: "span" };

function emptyRow({ row, strip }) {
  const node = document.createElement("div");
  node.innerHTML = `<small></small><div class="${strip}s"></div><span class="end"></span>`;
  if (row !== undefined) node.dataset.row = row;
  return node;
}

function drawRow(node, { look, name, strip, first, cells, end }) {
  restyle(node, look);
  write(node.children[0], name);
  drawCells(node.children[1], strip, first, cells);
  write(node.children[2], end);
}

// A cell keeps its number: those that leave the window at one side come in again at the other.
function drawCells(node, strip, first, cells) {
  const before = node.first ?? first, kept = [], spare = [];
  [...node.children].forEach((cell, place) => {
    const inside = before + place >= first && before + place < first + cells.length;
    (inside ? kept : spare).push(cell);
  });
  for (const cell of spare) cell.remove();
  node.first = first;
  const entered = Math.max(0, before - first);
  cells.forEach(({ look, markup }, place) => {
    const cell = kept[place - entered] ?? spare.pop() ?? document.createElement(CELL_TAGS[strip]);
    if (cell.parentNode !== node) {
      cell.dataset[strip] = first + place;
      node.insertBefore(cell, node.children[place] ?? null);
    }
    restyle(cell, look);
    write(cell, markup);
  });
}
