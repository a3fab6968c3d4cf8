// The pool: which rows are under way, which of them run together now, and who waits.

function poolMarkup(lane, frame) {
  if (!frame.pool?.length) return `<p class="none">This strategy keeps no pool: its rows are its batch.</p>`;
  const slots = frame.pool.map((row) => {
    if (row < 0) return `<span class="berth">free</span>`;
    const runs = isActive(frame, row);
    return `<span class="berth${runs ? " runs" : ""}" data-row="${row}">${runs ? "▸ " : ""}row ${row} <small>${frame.length[row]} tokens</small></span>`;
  });
  const waiting = frame.waiting?.length ? `<p class="none">waiting: ${rowNames(frame.waiting)}</p>` : "";
  return `<div class="pool">${slots.join("")}</div>${waiting}`;
}

const rowNames = (rows) => `row${rows.length > 1 ? "s" : ""} ${rows.join(", ")}`;

function poolCaption(lane, frame) {
  if (!frame.pool?.length) return "";
  const group = frame.pool.filter((row) => row >= 0 && isActive(frame, row));
  return group.length ? `together now: ${rowNames(group)}` : "";
}
