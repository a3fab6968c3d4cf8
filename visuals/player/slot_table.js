// The slots of a phase as comma-separated values, one line per row, model and slot.

const SLOT_COLUMNS = [
  "lane", "round", "phase", "row", "slot", "model", "state", "token id", "token text", "position", "expected", "visible", "error",
];

function slotTable(lanes) {
  const lines = lanes.flatMap((lane) => {
    const frame = frameOf(lane, cursor);
    return frame.length.flatMap((_, row) => ["target", "draft"].filter((model) => frame[model])
      .flatMap((model) => slotLines(lane, frame, model, row)));
  });
  return [SLOT_COLUMNS, ...lines].map((line) => `${line.map(csvCell).join(",")}\r\n`).join("");
}

function slotLines(lane, frame, model, row) {
  const cache = frame[model];
  const known = (number) => (number < 0 ? "" : number);
  return cache.state[row].map((kind, slot) => {
    const token = cache.token[row][slot];
    return [
      lane.name, frame.round, frame.phase, row, slot, model, lane.slot_states[kind], known(token), tokenText(lane, token),
      known(cache.position[row][slot]), known(cache.expected[row][slot]), Number(cache.visible[row][slot]), cache.error[row][slot] ?? "",
    ];
  });
}

// A spreadsheet computes a text that begins like a formula; behind an apostrophe it stays a text.
function csvCell(value) {
  if (typeof value === "number") return `${value}`;
  const text = /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
