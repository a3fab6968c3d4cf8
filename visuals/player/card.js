// The details card: everything known of the cell under the pointer.

function cellDetails(lane, frame, state, target) {
  const row = Number(target.closest("[data-row]").dataset.row);
  if (target.dataset.chip !== undefined) {
    const place = Number(target.dataset.chip);
    const token = frame.token[row][place];
    const role = lane.roles[frame.role[row][place]];
    const round = frame.token_round[row][place];
    return `row ${row} · <q>${chipText(lane, token)}</q> id ${token}<br>${role}${round > 0 ? `, round ${round}` : ""}`;
  }
  const cache = frame[state.model];
  const slot = Number(target.dataset.slot);
  const kind = lane.slot_states[cache.state[row][slot]];
  const expected = cache.expected[row][slot];
  const position = cache.position[row][slot];
  const error = cache.error[row][slot];
  const lines = [
    `row ${row}, ${state.model} slot ${slot}: <q>${chipText(lane, cache.token[row][slot])}</q>`,
    `${kind}, ${cache.visible[row][slot] === "1" ? "visible" : "hidden"}`,
    expected < 0 ? `position ${position}; holds no token of the row`
      : `position ${position}${position === expected ? "" : `, <b class="bad">should be ${expected}</b>`}`,
  ];
  if (error !== null && error !== undefined)
    lines.push(`K/V off by ${error.toExponential(1)} (bound ${lane.error_bound[state.model].toExponential(0)})`);
  return lines.join("<br>");
}
