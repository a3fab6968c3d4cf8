// A lane as files of text: the documented trace, and its phases as a timeline of events.

const only = (whole, names) => Object.fromEntries(names.flatMap((name) =>
  (whole[name] === undefined ? [] : [[name, whole[name]]])));

// Without what the player has derived from it.
function traceOf(lane) {
  const frames = lane.frames.map((frame) => only(frame, payload.frame_fields));
  return { ...only(lane, payload.fields), frames };
}

// Chrome's trace events, which Perfetto reads; the phases of a lane lie end to end, in microseconds.
function timingOf(lanes) {
  const about = (name, tid, args) => ({ ph: "M", name, pid: 1, tid, args });
  const events = [about("process_name", 0, { name: `BatchSpec, ${payload.pair}` })];
  lanes.forEach((lane, place) => {
    const tid = place + 1;
    events.push(about("thread_name", tid, { name: lane.name }), about("thread_sort_index", tid, { sort_index: place }));
    let start = 0;
    for (const frame of lane.frames) {
      const length = 1e6 * frame.seconds;
      const total = (counts) => counts.reduce((sum, count, row) => sum + (isActive(frame, row) ? Math.max(0, count) : 0), 0);
      events.push({
        ph: "X", name: frame.phase, cat: "phase", pid: 1, tid, ts: start, dur: length,
        args: { round: frame.round, drafted: total(frame.drafted), accepted: total(frame.accepted), "slots moved": frame.slots_moved },
      });
      start += length;
    }
  });
  return { traceEvents: events, displayTimeUnit: "ms" };
}
