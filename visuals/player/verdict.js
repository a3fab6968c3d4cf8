// The verdict: invariants, and outputs held against the reference.

// An invariant that broke once stays broken: a row that has left took its evidence along.
function invariantsMarkup(lane, frame, state, number) {
  return Object.entries(lane.invariants).map(([name, what]) => {
    const fault = lane.totals[number].faults[name];
    if (!fault) return `<span class="yes">✓ ${name} ${what}</span>`;
    const rows = `row${fault.rows.length > 1 ? "s" : ""} ${fault.rows.join(", ")}`;
    return `<button class="no" data-invariant="${name}" title="Broke first in round ${fault.round}: go there">✗ ${name} ${what}<small> ${rows}</small></button>`;
  }).join("");
}

function verdictMarkup(lane, frame, last) {
  const wrong = frame.violations.filter((violation) => violation.invariant === "I4");
  if (wrong.length) {
    const first = Math.min(...wrong.map((violation) => violation.slot)) + 1;
    return `<span class="verdict bad" title="first at new token ${first}">✗ ${wrong.length} of ${frame.token.length} rows diverged</span>`;
  }
  return `<span class="verdict good">✓ equal to the reference${last ? "" : " so far"}</span>`;
}

function statsMarkup(lane, number) {
  const total = lane.totals[number];
  const parts = [
    ["mean acceptance length", total.turns ? (total.won / total.turns).toFixed(2) : "–"],
    ["target forwards", total.forwards],
    ["tokens/s", total.won ? Math.round(total.won / total.seconds) : "–"],
  ];
  if (VIEWS.pool.has(lane) && total.rounds) parts.push(["group rate", `${Math.round(100 * total.grouped / total.rounds)} %`]);
  return parts.map(([words, value]) => `<span>${words} <b>${value}</b></span>`).join("");
}

// One entry a row, so that only rows that gained something are written again.
function outputsMarkup(lane, frame, state) {
  return frame.token.map((_, row) => {
    const written = frame.length[row] - lane.prompts[row].length;
    const tokens = lane.generated[row].slice(0, written);
    const wrong = frame.violations.find((v) => v.invariant === "I4" && v.row === row);
    const text = (list) => escapeText(runningText(lane, list.filter((token) => !lane.special_ids.includes(token))));
    const prompt = `<span class="prompt">${text(lane.prompts[row])}</span>`;
    const said = wrong ? divergedMarkup(lane, row, tokens, wrong.slot, text) : text(tokens);
    return `<div class="output${row === state.row ? " chosen" : ""}" data-row="${row}"><small>${row}</small><div>${prompt}${said}</div></div>`;
  });
}

function divergedMarkup(lane, row, tokens, place, text) {
  const first = escapeText(runningText(lane, tokens.slice(place, place + 1)));
  const reference = lane.reference[row].slice(place, Math.max(tokens.length, place + 1));
  return `${text(tokens.slice(0, place))}<mark title="first divergence, new token ${place + 1}">✗${first}</mark>` +
    `<del>${text(tokens.slice(place + 1))}</del><p class="reference">reference: …<ins>${text(reference)}</ins></p>`;
}
