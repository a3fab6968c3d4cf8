// The work ledger: where the time of a round went, and what the target computed for nothing.

function workMarkup(lane, frame, state, number) {
  const parts = lane.frames.filter((other) => other.round === frame.round && other.phase !== "prefill");
  const total = parts.reduce((sum, part) => sum + part.seconds, 0);
  const scale = Math.max(...payload.lanes.map((other) => other.roundSeconds[frame.round] || 0), total);
  const time = parts.map((part) => segment(part.phase, part.seconds / scale, `${part.phase} ${milliseconds(part.seconds)}`));
  const work = lane.totals[number];
  const kept = work.computed - work.filler - work.rejected;
  const slots = [["kept", kept, "kept"], ["rejected", work.rejected, "rejected"], ["filler", work.filler, "filler"]]
    .map(([look, count, words]) => segment(look, count / Math.max(1, work.computed), `${count} ${words}`));
  return `<div class="ledger">${time.join("")}</div><div class="ledger">${slots.join("")}</div>
    <p class="work">The target computed <b>${work.computed}</b> token slots: <b>${kept}</b> kept, <b>${work.rejected}</b> rejected, <b>${work.filler}</b> filler. ${movedWords(work)}</p>`;
}

const segment = (look, share, words) => `<i class="${look}" style="width:${100 * share}%" title="${words}"></i>`;
const milliseconds = (seconds) => `${(1000 * seconds).toFixed(1)} ms`;

function movedWords({ moved, bytes }) {
  if (!moved) return "Nothing was moved.";
  return `Moved: <b>${moved}</b> slots${bytes ? `, <b>${size(bytes)}</b>` : ""}.`;
}

function size(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log(bytes) / Math.log(1000)));
  return `${(bytes / 1000 ** power).toFixed(power ? 1 : 0)} ${units[power]}`;
}

function workCaption(lane, frame) {
  return lane.frames.filter((other) => other.round === frame.round && other.phase !== "prefill")
    .map((part) => `${part.phase} ${milliseconds(part.seconds)}`).join(" · ");
}
