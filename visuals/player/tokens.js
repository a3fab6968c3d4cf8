// Tokens: each row's text as chips, this round's tokens told apart by colour and glyph.

const CHARACTER = 7.3, CHIP_FRAME = 8; // widths in pixels, on the narrow side

function tokensView(lane, frame, state) {
  return frame.token.map((tokens, row) => {
    const count = tokens.filter((token) => token >= 0).length;
    const chips = [];
    let room = 16 * state.columns;
    for (let place = count - 1; place >= 0 && room > 0; place -= 1) {
      const look = chipLook(lane, frame, row, place);
      const text = look === "pad" ? "pad" : chipText(lane, tokens[place]);
      const letters = look === "pad" ? 3 : tokenText(lane, tokens[place]).trim().length;
      room -= CHARACTER * Math.max(1, letters) + CHIP_FRAME;
      const glyph = look === "pad" ? "" : state.palette[look].glyph;
      chips.unshift({
        look: `chip ${look}${look === "pad" ? " wrong" : ""}`,
        markup: `${glyph && `<i>${glyph}</i>`}${text}`,
      });
    }
    return {
      row, look: rowLook(frame, row, state), name: `${row}`, strip: "chip", first: count - chips.length,
      cells: chips, end: scoreMarkup(frame, row),
    };
  });
}

function chipLook(lane, frame, row, place) {
  const role = lane.roles[frame.role[row][place]];
  if (role === "pad" || role === "draft") return role;
  return frame.token_round[row][place] === frame.round && role !== "prompt" ? role : "committed";
}

function scoreMarkup(frame, row) {
  if (isFinished(frame, row) && !isActive(frame, row)) return "done";
  if (frame.accepted[row] < 0) return frame.drafted[row] < 0 ? "" : `${frame.drafted[row]} drafts`;
  return `<b>${frame.accepted[row]}</b>/${frame.drafted[row]}`;
}

function rowLook(frame, row, state) {
  return `row${isActive(frame, row) ? "" : " off"}${row === state.row ? " chosen" : ""}`;
}
