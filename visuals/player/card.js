// The details card: everything known of a token, in the lane it was pointed at.

function cellDetails(lane, frame, token) {
  const { row, place } = token;
  const chip = token.chip ?? chipsOf(lane, frame, row)[place];
  const lines = [`row ${row}${place >= 0 ? `, token ${place}` : ""}`];
  if (chip !== undefined) lines.push(...tokenDetails(lane, frame, row, chip));
  const model = token.model ?? state.model;
  const slot = token.slot ?? (place < 0 ? -1 : frame[model]?.expected[row].indexOf(place));
  if (slot >= 0 && frame[model]) lines.push(...slotDetails(lane, frame, model, row, slot));
  return lines.join("<br>");
}

function tokenDetails(lane, frame, row, chip) {
  const token = frame.token[row][chip], round = frame.token_round[row][chip];
  const role = lane.roles[frame.role[row][chip]];
  const lines = [`<q>${chipText(lane, token)}</q> id ${token}`, `${role}${round > 0 ? `, round ${round}` : ""}`];
  const judged = round > 0 && role !== "pad" && judgementOf(lane, frame, row, chip, role, round);
  return judged ? [...lines, ...judged] : lines;
}

const percent = (share) => (share === null || share === undefined ? "" : ` (${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %)`);

// Who proposed a token and who judged it, with the probabilities of both.
function judgementOf(lane, frame, row, chip, role, round) {
  const verdict = lane.verdicts.find((one) => one.round === round && isActive(one, row));
  const judgement = (frame.round === round && frame.phase === "draft" ? frame : verdict)?.judgement;
  if (!judgement) return null;
  const place = chipsOf(lane, frame, row).indexOf(chip);
  // What the target has just written has no place yet: it stands behind the drafts it accepts.
  const turn = place < 0 ? verdict.accepted[row] : place - (verdict ?? frame).length[row];
  const said = (who, token, share) => `${who} <q>${chipText(lane, token)}</q>${percent(share)}`;
  const { token, choice } = judgement, proposed = token[row]?.[turn] ?? -1, wanted = choice[row]?.[turn] ?? -1;
  const lines = [];
  if (proposed >= 0) lines.push(said("draft proposes", proposed, judgement.draft_probability[row][turn]));
  if (role === "draft" || wanted < 0) return lines;
  lines.push(said("target writes", wanted, judgement.choice_probability[row][turn]));
  if (proposed >= 0 && proposed !== wanted) lines.push(said("target gives", proposed, judgement.target_probability[row][turn]));
  return lines;
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
