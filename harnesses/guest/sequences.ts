/** How far back the beginning of an escape sequence is looked for: as far as the kernel believes that a sequence has text. */
export const LOOK_BACK = 4096;

// Escape sequences of ECMA-48 as bytes: with parameters (CSI), with a text (OSC, DCS, SOS, PM, APC), short ones. The introducers of the
// first two also as the characters U+0080 to U+009F.
const PARAMETERS = '(?:\\x1b\\[|\\xc2\\x9b)[0-?]*[ -/]*';
const TEXT = '(?:\\x1b[\\]PX^_]|\\xc2[\\x90\\x98\\x9d-\\x9f])(?:[^\\x07\\x1b\\xc2]|\\xc2(?!\\x9c))*';
const WHOLE = [`${PARAMETERS}[@-~]`, `${TEXT}(?:\\x07|\\x1b\\\\|\\xc2\\x9c)`, '\\x1b[ -/]+[0-~]', '\\x1b[0-OQ-WYZ\\\\\\x60-~]'].join('|');
const BEGUN = new RegExp(`(?:${PARAMETERS}|${TEXT}\\x1b?|\\x1b[ -/]*)$`);

/** Where an escape sequence begins that `end` cuts off; `end` when it cuts none. */
export function cutSequence(bytes: Buffer, end: number): number {
  const from = Math.max(0, end - LOOK_BACK);
  const text = bytes.toString('latin1', from, end);
  // A whole one is no part of another: BEL is in none.
  const at = text.replace(new RegExp(WHOLE, 'g'), (sequence) => '\x07'.repeat(sequence.length)).search(BEGUN);
  return at === -1 ? end : from + at;
}

/** The end of the escape sequence that `start` cuts; `start` when it cuts none, or one that has no end nearby. */
export function sequenceEnd(bytes: Buffer, start: number): number {
  const begun = cutSequence(bytes, start);
  if (begun === start) return start;
  const whole = new RegExp(WHOLE, 'y').exec(bytes.toString('latin1', begun, start + LOOK_BACK));
  return whole === null ? start : begun + whole[0].length;
}
