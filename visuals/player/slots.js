// The cache, slot by slot: what each slot holds, and the position ID it was fed with.

// The last columns that fit, ending where this round's widest forward ends, so that cells stay in
// place while the round goes on.
function slotWindow(lane, frame, model, state) {
  const end = Math.max(lane.width[model + frame.round] || 0, 1);
  return { start: Math.max(0, end - state.columns), end };
}

function slotLook(lane, frame, cache, row, slot) {
  const kind = lane.slot_states[cache.state[row][slot]];
  const place = cache.expected[row][slot];
  if (kind === "draft" && frame.phase === "verify" && frame.accepted[row] >= 0)
    return place - frame.length[row] < frame.accepted[row] ? "accepted" : "rejected";
  if (kind !== "committed") return kind;
  const chip = chipOf(lane, frame, row, place);
  return frame.token_round[row][chip] === frame.round && frame.round > 0
    ? chipLook(lane, frame, row, chip) : "committed";
}

// Where the token at a place of the row's sequence stands among its chips.
function chipOf(lane, frame, row, place) {
  const pad = lane.roles.indexOf("pad");
  const roles = frame.role[row];
  let seen = -1;
  for (let chip = 0; chip < roles.length; chip += 1) {
    if (roles[chip] !== pad) seen += 1;
    if (seen === place) return chip;
  }
  return -1;
}

const isLeak = (cache, row, slot) => cache.visible[row][slot] === "1" && cache.expected[row][slot] < 0;
const isOff = (lane, model, cache, row, slot) =>
  cache.visible[row][slot] === "1" && cache.error[row][slot] > lane.error_bound[model];
const isMisplaced = (cache, row, slot) => cache.visible[row][slot] === "1" &&
  cache.expected[row][slot] >= 0 && cache.position[row][slot] !== cache.expected[row][slot];

function slotRows(lane, frame, state, cell) {
  const cache = frame[state.model];
  if (!cache) return ['<p class="none">This strategy uses no draft model.</p>'];
  if (!frame.active.includes("1") || !cache.state[0].length)
    return ['<p class="none">The cache is empty: every row is done.</p>'];
  const { start, end } = slotWindow(lane, frame, state.model, state);
  return frame.token.map((_, row) => {
    const cells = [];
    for (let slot = start; slot < end; slot += 1)
      cells.push(slot < cache.state[row].length && cache.state[row][slot] > 0
        ? cell(cache, row, slot) : '<i class="free"></i>');
    const held = [...(cache.visible[row] || "")].filter((bit) => bit === "1").length;
    return rowMarkup(frame, row, `<div class="slots" style="--columns:${state.columns}">${cells.join("")}</div>`,
      isActive(frame, row) && held ? `${held} kv` : "", state);
  });
}

function cacheView(lane, frame, state) {
  return slotRows(lane, frame, state, (cache, row, slot) => {
    const look = slotLook(lane, frame, cache, row, slot);
    const off = isOff(lane, state.model, cache, row, slot);
    const wrong = isLeak(cache, row, slot) ? " wrong" : off ? " off-value" : "";
    return `<i class="${look}${wrong}" data-slot="${slot}">${off ? "≠" : state.palette[look].glyph}</i>`;
  });
}

function positionsView(lane, frame, state) {
  return slotRows(lane, frame, state, (cache, row, slot) => {
    const look = slotLook(lane, frame, cache, row, slot);
    const wrong = isMisplaced(cache, row, slot) || isLeak(cache, row, slot) ? " wrong" : "";
    const text = look === "pad" && !wrong ? "" : cache.position[row][slot];
    return `<i class="${look}${wrong}" data-slot="${slot}">${text}</i>`;
  });
}
