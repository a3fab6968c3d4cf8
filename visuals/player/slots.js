// The cache, slot by slot: what each slot holds, and the position ID it was fed with.

// The last columns that fit, ending where this round's widest forward ends, so that cells stay in
// place while the round goes on.
function slotWindow(lane, frame, model, state) {
  const own = lane.width[model + frame.round] || 0;
  const end = Math.max(own, frame.phase === "prefill" ? lane.width[`${model}prefill${frame.round}`] : 0, 1);
  return { start: Math.max(0, end - state.columns), end };
}

// The window of each row: where every row ends at its own length, a row shows its own last slots.
function rowWindows(lane, frame, model, state) {
  const { start, end } = slotWindow(lane, frame, model, state), width = end - start;
  const empty = ["free", "pad"].map((kind) => lane.slot_states.indexOf(kind));
  const held = frame[model].state.map((kinds) => kinds.findLastIndex((kind) => !empty.includes(kind)) + 1);
  const longest = Math.max(...held);
  return held.map((count) => {
    const own = Math.max(width, end - longest + count);
    return { start: own - width, end: own };
  });
}

function slotLook(lane, frame, cache, row, slot, chips) {
  const kind = lane.slot_states[cache.state[row][slot]];
  const place = cache.expected[row][slot];
  if (kind === "draft" && frame.phase === "verify" && frame.accepted[row] >= 0)
    return place - frame.length[row] < frame.accepted[row] ? "accepted" : "rejected";
  if (kind !== "committed") return kind;
  const chip = chips[place];
  return frame.token_round[row][chip] === frame.round && frame.round > 0
    ? chipLook(lane, frame, row, chip) : "committed";
}

// Where the tokens that the caches hold, or will hold, stand among the row's chips. What the target
// has just written in the place of a rejected draft is not in any cache: the draft is.
function chipsOf(lane, frame, row) {
  const pad = lane.roles.indexOf("pad"), own = ["correction", "bonus"].map((role) => lane.roles.indexOf(role));
  return frame.role[row].flatMap((role, chip) => {
    const isNew = frame.phase === "verify" && own.includes(role) && frame.token_round[row][chip] === frame.round;
    return role === pad || isNew || frame.token[row][chip] < 0 ? [] : [chip];
  });
}

const isLeak = (cache, row, slot) => cache.visible[row][slot] === "1" && cache.expected[row][slot] < 0;
const isOff = (lane, model, cache, row, slot) =>
  cache.visible[row][slot] === "1" && cache.error[row][slot] > lane.error_bound[model];
const isMisplaced = (cache, row, slot) => cache.visible[row][slot] === "1" &&
  cache.expected[row][slot] >= 0 && cache.position[row][slot] !== cache.expected[row][slot];

function slotRange(lane, frame, state) {
  const { start, end } = slotWindow(lane, frame, state.model, state);
  if (!start) return `${end} slots`;
  const alike = !frame[state.model] || rowWindows(lane, frame, state.model, state)
    .every((own, row) => !isActive(frame, row) || own.start === start);
  return alike ? `slots ${start}–${end - 1}` : `last ${end - start} slots of each row`;
}

const FREE = { look: "free", markup: "" };

function slotRows(lane, frame, state, cell) {
  const cache = frame[state.model];
  if (!cache) return "This strategy uses no draft model.";
  if (!frame.active.includes("1") || !cache.state[0].length)
    return "The cache is empty: every row is done.";
  return rowWindows(lane, frame, state.model, state).map(({ start, end }, row) => {
    const cells = [], chips = chipsOf(lane, frame, row);
    for (let slot = start; slot < end; slot += 1)
      cells.push(slot < cache.state[row].length && cache.state[row][slot] > 0
        ? cell(cache, row, slot, slotLook(lane, frame, cache, row, slot, chips)) : FREE);
    const held = [...(cache.visible[row] || "")].filter((bit) => bit === "1").length;
    return {
      row, look: rowLook(frame, row, state), name: `${row}`, strip: "slot", first: start, cells,
      end: shiftMarkup(frame, state.model, row) || (isActive(frame, row) && held ? `${held} kv` : ""),
    };
  });
}

function shiftMarkup(frame, model, row) {
  const shift = frame.shifts[model]?.[row];
  return shift ? `<b>${shift > 0 ? "→" : "←"} ${Math.abs(shift)}</b>` : "";
}

// Exponents of ten from rounding to plainly wrong, as steps of a scale from pale to dark.
const DECADES = [-8, -6, -4, -2];

function errorCell(lane, model, cache, row, slot) {
  const error = cache.error[row][slot];
  if (error === null || error === undefined || cache.visible[row][slot] !== "1") return { look: "unmeasured", markup: "" };
  const exponent = error > 0 ? Math.max(-16, Math.min(9, Math.floor(Math.log10(error)))) : null;
  const wrong = isOff(lane, model, cache, row, slot) ? " wrong" : "";
  return {
    look: `decade-${exponent === null ? 0 : DECADES.filter((edge) => exponent >= edge).length}${wrong}`,
    markup: exponent === null ? "0" : `${exponent}`,
  };
}

function cacheView(lane, frame, state) {
  return slotRows(lane, frame, state, (cache, row, slot, look) => {
    if (state.shows === "error") return errorCell(lane, state.model, cache, row, slot);
    const off = isOff(lane, state.model, cache, row, slot);
    const wrong = isLeak(cache, row, slot) ? " wrong" : off ? " off-value" : "";
    return { look: look + wrong, markup: off ? "≠" : state.palette[look].glyph };
  });
}

function positionsView(lane, frame, state) {
  return slotRows(lane, frame, state, (cache, row, slot, look) => {
    const wrong = isMisplaced(cache, row, slot) || isLeak(cache, row, slot) ? " wrong" : "";
    const text = look === "pad" && !wrong ? "" : `${cache.position[row][slot]}`;
    return { look: look + wrong + (text.length > 3 ? " long" : ""), markup: text };
  });
}
