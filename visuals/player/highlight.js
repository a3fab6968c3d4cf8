// One token, lit wherever it is: its chip, slots, position and mask, in every lane and view.

const TOLD = "[data-chip], [data-row] [data-slot]:not(.free), .query [data-slot]:not(.free)";
let pointed = null, locked = null, lit = [];

// A token is a row and its place in the row's sequence; filler has a slot alone.
function tokenAt(node) {
  const lane = laneOf(node), frame = frameOf(lane, cursor);
  const row = Number(node.closest("[data-row]")?.dataset.row ?? state.row);
  const { chip, slot } = node.dataset;
  if (chip !== undefined) return { row, place: chipsOf(lane, frame, row).indexOf(Number(chip)), chip: Number(chip), lane: lane.name };
  const model = node.closest(".query") ? maskOf(frame, row).model : state.model;
  const place = frame[model]?.expected[row][slot] ?? -1;
  return { row, place, slot: Number(slot), model, lane: lane.name };
}

function drawHighlight() {
  for (const node of lit) delete node.dataset.lit;
  lit = [];
  const token = locked ?? (pointed?.isConnected && pointed.matches(TOLD) ? tokenAt(pointed) : null);
  root.classList.toggle("locked", Boolean(locked));
  if (token) for (const lane of payload.lanes) light(lane, token);
  drawCard(token);
  const own = locked && lit.find((node) => laneOf(node).name === locked.lane);
  if (own) placeCard(own);
}

function light(lane, { row, place, chip, slot, lane: own }) {
  const frame = frameOf(lane, cursor), section = find(`[data-lane="${CSS.escape(lane.name)}"]`);
  const mark = (selector) => {
    for (const node of section.querySelectorAll(selector)) {
      node.dataset.lit = "";
      lit.push(node);
    }
  };
  const slotOf = (model) => (place < 0 ? (own === lane.name ? slot : undefined)
    : frame[model]?.expected[row].indexOf(place));
  const at = place < 0 ? (own === lane.name ? chip : undefined) : chipsOf(lane, frame, row)[place];
  if (at !== undefined) mark(`[data-view=tokens] [data-row="${row}"] [data-chip="${at}"]`);
  const cached = slotOf(state.model);
  if (cached >= 0) mark(`:is([data-view=cache], [data-view=positions]) [data-row="${row}"] [data-slot="${cached}"]`);
  if (row !== state.row) return;
  const { model, queries } = maskOf(frame, row), column = slotOf(model);
  if (column >= 0) mark(`[data-view=mask] [data-slot="${column}"]`);
  const query = queries.slice(-QUERIES_SHOWN).findIndex((one) => place >= 0 && one.place === place);
  if (query >= 0) mark(`[data-view=mask] .query:nth-child(${query + 1})`);
}

function drawCard(token) {
  const card = find(".card");
  const lane = token && payload.lanes.find((other) => other.name === token.lane);
  card.hidden = !lane;
  if (lane) write(card, cellDetails(lane, frameOf(lane, cursor), token) + (locked ? "<br><small>locked, Esc unlocks</small>" : ""));
}

function placeCard(node) {
  const card = find(".card");
  const box = node.getBoundingClientRect(), frame = root.getBoundingClientRect();
  const left = Math.min(box.left - frame.left, frame.width - card.offsetWidth - 8);
  card.style.translate = `${Math.max(0, left)}px ${box.bottom - frame.top + 4}px`;
}

// A click keeps a token lit; a click anywhere in a row also shows its mask.
function lock(node) {
  const cell = node.closest(TOLD);
  const token = cell && tokenAt(cell);
  locked = token && JSON.stringify(token) !== JSON.stringify(locked) ? token : null;
  if (cell) placeCard(cell);
  chooseRow(Number(node.closest("[data-row]").dataset.row));
}

function unlock() {
  locked = pointed = null;
  drawHighlight();
}

root.addEventListener("mouseover", (event) => {
  const before = pointed;
  pointed = event.target.closest(TOLD);
  if (locked || pointed === before) return;
  drawHighlight();
  if (pointed) placeCard(pointed);
});
root.addEventListener("mouseleave", () => {
  pointed = null;
  if (!locked && steps.length) drawHighlight();
});
