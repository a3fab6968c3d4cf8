// Acceptance history: how many drafts each row kept, round by round.

function historyView(lane, frame, state) {
  const rounds = lane.verdicts.filter((verdict) => verdict.round <= frame.round &&
    (verdict.round < frame.round || !["prefill", "schedule", "draft"].includes(frame.phase)));
  const first = Math.max(0, rounds.length - state.columns);
  return frame.length.map((_, row) => {
    const cells = rounds.slice(first).map((verdict) => historyCell(verdict, row));
    const taken = rounds.filter((verdict) => isActive(verdict, row));
    const kept = taken.reduce((sum, verdict) => sum + verdict.accepted[row], 0);
    const drafted = taken.reduce((sum, verdict) => sum + verdict.drafted[row], 0);
    return {
      row, look: rowLook(frame, row, state), name: `${row}`, strip: "slot", first, cells,
      end: drafted ? `${Math.round(100 * kept / drafted)} %` : "",
    };
  });
}

function historyCell(verdict, row) {
  if (!isActive(verdict, row)) return { look: "free", markup: "" };
  const kept = verdict.accepted[row], drafted = verdict.drafted[row];
  const look = !drafted ? "committed" : kept === drafted ? "bonus" : kept ? "accepted" : "rejected";
  return { look, markup: `${kept}` };
}
