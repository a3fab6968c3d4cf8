// The details card: everything known of a token, in the lane it was pointed at.

function cellDetails(lane, frame, token) {
  const { row, place } = token;
  const chip = token.chip ?? chipsOf(lane, frame, row)[place];
  const lines = [`row ${row}${place >= 0 ? `, token ${place}` : ""}`];
  if (chip !== undefined) lines.push(...tokenDetails(lane, frame, row, chip));
  const model = token.model ?? state.model;
  const slot = token.slot ?? frame[model]?.expected[row].indexOf(place);
  if (slot >= 0 && frame[model]) lines.push(...slotDetails(lane, frame, model, row, slot));
  return lines.join("<br>");
}

function tokenDetails(lane, frame, row, chip) {
  const token = frame.token[row][chip], round = frame.token_round[row][chip];
  const role = lane.roles[frame.role[row][chip]];
  return [
    `<q>${chipText(lane, token)}</q> id ${token}`,
    `${role}${round > 0 ? `, round ${round}` : ""}`,
  ];
}

function slotDetails(lane, frame, model, row, slot) {
  const cache = frame[model];
  const expected = cache.expected[row][slot], position = cache.position[row][slot], error = cache.error[row][slot];
  const kind = lane.slot_states[cache.state[row][slot]];
  const lines = [
    `${model} slot ${slot}: ${kind}, ${cache.visible[row][slot] === "1" ? "visible" : "hidden"}`,
    expected < 0 ? `position ${position}; holds no token of the row`
      : `position ${position}${position === expected ? "" : `, <b class="bad">should be ${expected}</b>`}`,
  ];
  if (error !== null && error !== undefined)
    lines.push(`K/V off by ${error.toExponential(1)} (bound ${lane.error_bound[model].toExponential(0)})`);
  return lines;
}
