// The frame as a plain table, for screen readers and for copying.

const TABLE_HEAD = ["row", "state", "length", "accepted", "target K/V", "draft K/V", "positions", "broken", "newest tokens"];

function tableMarkup(lane, frame) {
  const rows = frame.length.map((length, row) => `<tr><th scope="row">${row}</th>${[
    isActive(frame, row) ? "in the batch" : isFinished(frame, row) ? "done" : "waiting",
    length,
    frame.drafted[row] < 0 ? "" : `${frame.accepted[row] < 0 ? "?" : frame.accepted[row]} of ${frame.drafted[row]}`,
    visibleSlots(frame.target, row), visibleSlots(frame.draft, row), positionRange(frame.target, row),
    [...new Set(frame.violations.filter((one) => one.row === row).map((one) => one.invariant))].join(" "),
    newestTokens(lane, frame, row),
  ].map((text) => `<td>${text}</td>`).join("")}</tr>`);
  return `<table><caption>Round ${frame.round}, ${frame.phase}</caption><thead><tr>${TABLE_HEAD.map((name) =>
    `<th scope="col">${name}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
}

const visibleSlots = (cache, row) => (cache ? [...(cache.visible[row] || "")].filter((bit) => bit === "1").length : "");

function positionRange(cache, row) {
  const shown = (cache.position[row] || []).filter((_, slot) => cache.visible[row][slot] === "1");
  return shown.length ? `${Math.min(...shown)}–${Math.max(...shown)}` : "";
}

function newestTokens(lane, frame, row) {
  return frame.token[row].flatMap((token, chip) => {
    const role = lane.roles[frame.role[row][chip]];
    const isNew = role !== "prompt" && frame.token_round[row][chip] === frame.round && token >= 0;
    return isNew ? [`${role} <q>${chipText(lane, token)}</q>`] : [];
  }).join(", ");
}
