/** How far back the beginning of an escape sequence is looked for. */
const LOOK_BACK = 256;

// Whole sequences of ECMA-48 as bytes: with parameters (CSI), with a text (OSC, DCS, SOS, PM, APC), short ones.
const WHOLE = new RegExp(
  ['\\x1b\\[[0-?]*[ -/]*[@-~]', '\\x1b[\\]PX^_][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)', '\\x1b[ -/]+[0-~]', '\\x1b[0-OQ-WYZ\\\\\\x60-~]'].join(
    '|',
  ),
  'g',
);

/** Where an escape sequence begins that `end` cuts off; `end` when it cuts none. */
export function cutSequence(bytes: Buffer, end: number): number {
  const from = Math.max(0, end - LOOK_BACK);
  if (bytes.lastIndexOf(0x1b, end - 1) < from) return end;
  const text = bytes.toString('latin1', from, end).replace(WHOLE, (sequence) => ' '.repeat(sequence.length));
  const at = text.indexOf('\x1b');
  return at === -1 ? end : from + at;
}

/** The end of the escape sequence that `start` cuts; `start` when it cuts none, or one that has no end nearby. */
export function sequenceEnd(bytes: Buffer, start: number): number {
  const begun = cutSequence(bytes, start);
  if (begun === start) return start;
  for (let end = start + 1; end <= Math.min(bytes.length, start + LOOK_BACK); end += 1) {
    if (cutSequence(bytes.subarray(begun, end), end - begun) === end - begun) return end;
  }
  return start;
}
