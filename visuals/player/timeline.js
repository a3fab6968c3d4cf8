// One cursor for lanes of different length, and what is derived from a frame once.

// By round, by phase, and by how many such phases came before: a pool takes several prefills to fill.
const MOST_ALIKE = 2 ** 19; // more than a file holds, and few enough for exact keys
const keyOf = (frame, order) => (frame.round * order.length + order.indexOf(frame.phase)) * MOST_ALIKE + frame.alike;
const alikeBefore = (frame, before) => (before?.round === frame.round && before.phase === frame.phase ? before.alike + 1 : 0);
const capital = (words) => words[0].toUpperCase() + words.slice(1);
const phaseWords = ({ phase, alike }) => (alike ? `${phase} ${alike + 1}` : phase);

// Take over the frames a lane has gained: running totals, the widest forward of each round, flags.
function absorb(lane, gained) {
  const first = lane.frames.length;
  lane.frames.push(...gained);
  for (let number = first; number < lane.frames.length; number += 1) {
    const frame = lane.frames[number], before = lane.frames[number - 1];
    frame.alike = alikeBefore(frame, before);
    for (const model of ["target", "draft"]) {
      const slots = frame[model] ? (frame[model].state[0] || []).length : 0;
      const fed = Math.max(0, ...frame.feeds.filter((feed) => feed.model === model)
        .map((feed) => feed.allowed[0][0].length));
      // A prefill may be wider than the round it belongs to: a pool fills lanes that wait.
      const key = model + (frame.phase === "prefill" ? "prefill" : "") + frame.round;
      lane.width[key] = Math.max(lane.width[key] || 0, slots, fed);
    }
    lane.totals.push(totalsAfter(lane, frame, before, lane.totals[number - 1]));
    frame.shifts = { target: shiftsOf(frame, before, "target"), draft: shiftsOf(frame, before, "draft") };
    if (frame.phase === "verify") lane.verdicts.push(frame);
    if (frame.phase !== "prefill")
      lane.roundSeconds[frame.round] = (lane.roundSeconds[frame.round] || 0) + frame.seconds;
  }
}

const NOTHING = {
  forwards: 0, won: 0, turns: 0, seconds: 0, rounds: 0, grouped: 0,
  computed: 0, filler: 0, rejected: 0, moved: 0, bytes: 0, faults: {}, flags: {},
};

function totalsAfter(lane, frame, before, last = NOTHING) {
  const ends = frame.phase === "synchronize";
  const won = ends ? frame.length.reduce((sum, length, row) => sum + length - before.length[row], 0) : 0;
  const counts = frame.accepted.filter((_, row) => isActive(frame, row));
  const broke = frame.violations.filter(({ invariant, row }) => !last.faults[invariant]?.rows.includes(row));
  return {
    forwards: last.forwards + frame.feeds.filter((feed) => feed.model === "target").length,
    won: last.won + won,
    turns: last.turns + (ends ? [...frame.active].filter((bit) => bit === "1").length : 0),
    seconds: last.seconds + frame.seconds,
    rounds: last.rounds + (frame.phase === "verify" ? 1 : 0),
    grouped: last.grouped + (frame.phase === "verify" && isGroup(frame) ? 1 : 0),
    ...workAfter(frame, last),
    faults: broke.length ? faultsWith(last.faults, broke, frame.round) : last.faults,
    flags: {
      fault: broke.some(({ invariant }) => !last.faults[invariant]),
      divergence: broke.some(({ invariant }) => invariant === "I4"),
      ragged: frame.phase === "verify" && Math.max(...counts) > Math.min(...counts),
      moved: frame.slots_moved > 0,
    },
  };
}

// Several rows of one length, which need no pads.
function isGroup(frame) {
  const lengths = frame.length.filter((_, row) => isActive(frame, row));
  return lengths.length > 1 && new Set(lengths).size === 1;
}

// Token slots the target computed, those of them that were for nothing, and what was moved.
function workAfter(frame, last) {
  let { computed, filler, rejected } = last;
  for (const feed of frame.feeds.filter((one) => one.model === "target"))
    feed.position.forEach((line, row) => line.forEach((position, query) => {
      computed += position >= 0;
      filler += position >= 0 && feed.expected[row][query] < 0;
    }));
  if (frame.phase === "verify")
    frame.accepted.forEach((kept, row) => { if (isActive(frame, row)) rejected += frame.drafted[row] - kept; });
  return { computed, filler, rejected, moved: last.moved + frame.slots_moved, bytes: last.bytes + (frame.bytes_moved || 0) };
}

// How far each row's left edge moved since the frame before, in slots.
function shiftsOf(frame, before, model) {
  if (!before?.[model] || !frame[model] || !["schedule", "synchronize"].includes(frame.phase)) return null;
  const edge = (cache, row) => cache.expected[row].findIndex((place) => place >= 0);
  return frame.length.map((_, row) => {
    const now = edge(frame[model], row), then = edge(before[model], row);
    return now < 0 || then < 0 ? 0 : now - then;
  });
}

// The first round and all rows of every invariant that broke.
function faultsWith(earlier, broke, round) {
  const faults = { ...earlier };
  for (const { invariant, row } of broke) {
    const { round: first = round, rows = [] } = faults[invariant] || {};
    faults[invariant] = { round: first, rows: [...new Set([...rows, row])].sort((a, b) => a - b) };
  }
  return faults;
}

// Every place that any lane has a frame at, in order, as far as every lane has come; and which frame
// each lane shows there.
function timeline(payload) {
  const order = payload.phases, keys = new Map();
  let limit = Infinity;
  for (const lane of payload.lanes) {
    for (const frame of lane.frames) keys.set(keyOf(frame, order), frame);
    if (!lane.ended) limit = Math.min(limit, lane.frames.length ? keyOf(lane.frames.at(-1), order) : -1);
  }
  const sorted = [...keys.keys()].filter((key) => key <= limit).sort((a, b) => a - b);
  for (const lane of payload.lanes) {
    let place = 0;
    lane.at = sorted.map((key) => {
      while (place + 1 < lane.frames.length && keyOf(lane.frames[place + 1], order) <= key) place += 1;
      return place;
    });
  }
  return sorted.map((key, place) => {
    const { round, phase, alike } = keys.get(key);
    return { round, phase, alike, flags: flagsAt(payload, place) };
  });
}

const isFresh = (lane, place) => place === 0 || lane.at[place] !== lane.at[place - 1];

function flagsAt(payload, place) {
  const flags = {};
  for (const lane of payload.lanes) {
    if (!isFresh(lane, place)) continue;
    for (const [name, set] of Object.entries(lane.totals[lane.at[place]].flags)) flags[name] ||= set;
  }
  return flags;
}
