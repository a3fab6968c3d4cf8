// A view opened large: a Plotly heatmap over all slots, filled from the frame.

const isShown = (lane, cache, row, slot) =>
  !["free", "pad"].includes(lane.slot_states[cache.state[row][slot]]);

function largeFigure(lane, frame, view, state) {
  const figure = structuredClone(lane.figures[view]);
  const data = figure.data[0];
  // Over all frames there are, so that nothing jumps from one to the next.
  const most = (values) => Math.max(1, ...lane.frames.map((one) => Math.max(0, ...values(one.target))));
  figure.layout.xaxis.range = [-0.5, most((cache) => [cache.state[0].length]) - 0.5];
  if (view === "positions") data.zmax = most((cache) => cache.position.flat());
  if (view === "mask") {
    const { model, queries } = maskOf(frame, state.row);
    data.z = queries.map((query) => [...query.allowed].map(
      (bit, slot) => Number(bit) + 2 * (bit !== query.should[slot])));
    data.y = queries.map((query, place) => `${place} ${tokenText(lane, query.token) || "next"}`);
    figure.layout.title.text = `Attention mask of row ${state.row}, ${model}`;
  } else {
    const cache = frame[state.model];
    if (!cache) return null;
    data.z = view === "cache" ? cache.state : cache.position.map((line, row) => line.map(
      (position, slot) => (isShown(lane, cache, row, slot) ? position : null)));
    data.text = cache.state.map((line, row) => line.map((_, slot) =>
      (isLeak(cache, row, slot) || isMisplaced(cache, row, slot) ? "✗" : "")));
    data.customdata = cache.state.map((line, row) => line.map((kind, slot) => [
      tokenText(lane, cache.token[row][slot]), lane.slot_states[kind], cache.position[row][slot],
      cache.expected[row][slot], cache.error[row][slot] ?? "not compared"]));
    figure.layout.title.text += `, ${state.model}`;
  }
  const style = getComputedStyle(document.querySelector("#player"));
  figure.layout.paper_bgcolor = figure.layout.plot_bgcolor = style.getPropertyValue("--panel");
  figure.layout.font.color = style.getPropertyValue("--ink");
  return figure;
}
