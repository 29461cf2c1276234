import { isMapping, type Json } from '../json.ts';
import { neutralText } from '../leak/controls.ts';
import { EVIDENCE_TERMS, type LeakNote, type LeakTerms, Scrubber } from '../leak/scrub.ts';
import type { RecordedOutcome, StoreEffect } from '../ports/store.ts';
import { truncateText } from './truncate.ts';
import type { CapabilityName } from './types.ts';

/** How the outcome of a call is brought into the form in which it is kept and given back. */
export interface OutcomeRules {
  readonly capability: CapabilityName;
  readonly secrets: readonly string[];
  readonly leaks: LeakTerms;
  readonly outputBytes: number;
  /** Control sequences of a command's output stay, because the caller asked for them. */
  readonly keepControls?: boolean;
}

/** An outcome as it is kept; what was found in it goes into the call's event. */
export interface KeptOutcome {
  readonly outcome: RecordedOutcome;
  readonly effect?: StoreEffect;
  readonly leaks: readonly LeakNote[];
}

/**
 * The obligations on a result, in this order: leaks are looked for in all that there is, control sequences of output are made harmless,
 * output is cut to its limit. A result that is kept back becomes an error, and its effect on the store does not happen.
 *
 * Field by field: output and replies are scrubbed by the terms; what is read from a file, listed or quoted may be written back, so there
 * only live secrets are replaced and shapes are told of; errors are evidence.
 */
export function keepOutcome(raw: RecordedOutcome, rules: OutcomeRules, effect?: StoreEffect): KeptOutcome {
  if (raw.kind === 'denied') return { outcome: raw, leaks: [] };
  const scrubber = new Scrubber(rules.secrets, raw.kind === 'error' ? EVIDENCE_TERMS : rules.leaks);
  const outcome: RecordedOutcome =
    raw.kind === 'error' ? { ...raw, message: scrubber.text(raw.message) } : { ...raw, result: keptResult(raw.result, rules, scrubber) };
  // A checkpoint is the loop's own memory of what it was given: its shapes stay, as they do in what it read.
  const kept = effect && { ...effect, body: scrubber.text(effect.body, { keepShapes: effect.kind === 'checkpoint' }) };
  const leaks = scrubber.notes();
  if (scrubber.blocked) return { outcome: keptBack(leaks), leaks };
  return kept === undefined ? { outcome, leaks } : { outcome, effect: kept, leaks };
}

const keptBack = (leaks: readonly LeakNote[]): RecordedOutcome => ({
  kind: 'error',
  code: 'leak_blocked',
  message: `The result is kept back. It holds: ${leaks.map(({ name, count }) => `${name} (${count})`).join(', ')}`,
});

function keptResult(result: Json, rules: OutcomeRules, scrubber: Scrubber): Json {
  const fields = fieldsOf(result);
  if (fields === undefined) return scrubber.json(result, { keepShapes: true });
  const kept = keptFields(fields, rules, scrubber);
  const leaks = scrubber.notes().map((note) => ({ ...note }));
  const told = leaks.length > 0 && (rules.capability === 'shell.exec' || rules.capability === 'fs.read');
  return told ? { ...kept, leaks } : kept;
}

type Fields = { readonly [name: string]: Json };

const fieldsOf = (value: Json): Fields | undefined => (isMapping(value) ? (value as Fields) : undefined);

function keptFields(fields: Fields, rules: OutcomeRules, scrubber: Scrubber): Fields {
  if (typeof fields.stdout === 'string' && typeof fields.stderr === 'string') return keptOutput(fields, rules, scrubber);
  if (fields.op === 'read' && typeof fields.body === 'string') return keptFile(fields, fields.body, scrubber);
  if (rules.capability === 'model.generate' && typeof fields.content === 'string') {
    const { content, ...rest } = fields;
    return { ...(scrubber.json(rest, { keepShapes: true }) as Fields), content: scrubber.text(content as string) };
  }
  if (fields.op === 'tail' && typeof fields.text === 'string') {
    const { text, ...rest } = fields;
    const clean = neutralText(scrubber.text(text as string, { edges: { start: true } }));
    return { ...(scrubber.json(rest, { keepShapes: true }) as Fields), text: truncateText(clean, rules.outputBytes).text };
  }
  return scrubber.json(fields, { keepShapes: true }) as Fields;
}

/** Both streams of a command, whoever captured them. */
function keptOutput(fields: Fields, { outputBytes, keepControls }: OutcomeRules, scrubber: Scrubber): Fields {
  const { stdout, stderr, truncated, ...rest } = fields;
  const stream = (text: string, total: Json | undefined) => {
    const clean = truncated === true ? scrubbedParts(text, scrubber) : scrubber.text(text);
    return truncateText(keepControls === true ? clean : neutralText(clean), outputBytes, typeof total === 'number' ? total : undefined);
  };
  const out = stream(stdout as string, rest.stdoutBytes);
  const err = stream(stderr as string, rest.stderrBytes);
  return {
    ...(scrubber.json(rest, { keepShapes: true }) as Fields),
    stdout: out.text,
    stderr: err.text,
    truncated: truncated === true || out.truncated || err.truncated,
  };
}

const CUT = /\n\[… \d+ of \d+ bytes left out …\]\n/g;

/** Where the guest has left a middle out, a secret may be torn: there pieces count that elsewhere would be too short. */
function scrubbedParts(text: string, scrubber: Scrubber): string {
  const parts: string[] = [];
  let from = 0;
  const cuts = [...text.matchAll(CUT)];
  for (const cut of cuts) {
    parts.push(scrubber.text(text.slice(from, cut.index), { edges: { start: from > 0, end: true } }), cut[0]);
    from = cut.index + cut[0].length;
  }
  return parts.join('') + scrubber.text(text.slice(from), { edges: { start: from > 0 } });
}

function keptFile(fields: Fields, body: string, scrubber: Scrubber): Fields {
  if (fields.encoding === 'base64') return { ...fields, body: scrubber.bytes(Buffer.from(body, 'base64')).toString('base64') };
  return { ...fields, body: scrubber.text(body, { keepShapes: true, edges: { end: fields.truncated === true } }) };
}
