import { setImmediate as turn } from 'node:timers/promises';
import { PolicyError } from '../../core/errors.ts';
import type { NewEvent } from '../../core/events.ts';
import type { Json } from '../../core/json.ts';
import type { Flip, PolicyChange } from '../../core/policy/control.ts';
import { isLooser, type Outcome } from '../../core/policy/looseness.ts';
import type { PolicyDigests, PolicyInput } from '../../core/policy/types.ts';
import type { DecisionRow } from '../../core/ports/store.ts';
import type { Bundle } from './bundle.ts';
import { toRegoInput } from './marshal.ts';
import type { Probe } from './probe.ts';
import { probeInputs } from './probe-inputs.ts';
import { unjudgedChanges } from './site-change.ts';
import type { Verdict } from './verdict.ts';

/** Answers one question, given as JSON of its Rego form. */
export type Ask = (text: string) => Verdict;

/** A question that was or could be asked. */
export interface Question {
  readonly of: string;
  readonly kind: string;
  readonly text: string;
  readonly about: Json;
  /** What was decided, when that is known, and by which snapshot. */
  readonly decided?: Outcome & { readonly digests: PolicyDigests };
}

/** A snapshot that can be asked. */
export interface Asked {
  readonly bundle: Bundle;
  /** As `Ask`; an answer may be kept. */
  askAgain(text: string): Verdict;
}

/** What a change does: the questions it answers differently, and what of it no question can judge. */
export type Difference = Pick<PolicyChange, 'flips'> & Required<Pick<PolicyChange, 'unjudged'>>;

export const NO_DIFFERENCE: Difference = { flips: [], unjudged: [] };

/** Questions are asked in slices, so that decisions go on meanwhile. */
const SLICE = 25;
/** Of what is looser an event names so many. */
const SHOWN = 20;

/** Why something is loaded: a person asked for it, by name; a poll asks for nothing. */
export interface LoadRequest {
  readonly byHand?: boolean;
  readonly widenBy?: string | undefined;
  /** Nothing was accepted before: what is looser is told, and held only where `holdFirst` says so. */
  readonly first?: boolean;
}

/** The event of what a person let happen, or of a first load that is not the shipped one, when there is one. */
export function changeEvents(
  { widenBy, first }: LoadRequest,
  from: Bundle | undefined,
  { snapshot: to }: Bundle,
  { flips, unjudged }: Difference,
): readonly NewEvent[] {
  const looser = flips.filter((flip) => flip.looser).map(({ of, before, after }) => ({ of, before, after }));
  const more = { flips: looser.length, first: looser.slice(0, SHOWN), unjudged: unjudged.slice(0, SHOWN) };
  if (widenBy !== undefined && looser.length + unjudged.length > 0) {
    return [{ type: 'policy.widened', data: { by: widenBy, from: from?.snapshot ?? '', to, ...more } }];
  }
  if (first !== true || from === undefined || from.snapshot === to) return [];
  return [{ type: 'policy.first_loaded', data: { shipped: from.snapshot, to, ...more } }];
}

/** Rows that must hold under any data. @throws PolicyError `policy_floor` naming the first that does not */
export function requireFloor(bundle: Bundle, ask: Ask): void {
  for (const { kind, note, input, effect } of bundle.cases.filter((row) => row.floor && row.settings === undefined)) {
    const verdict = ask(JSON.stringify(input));
    if (verdict.effect === effect) continue;
    throw new PolicyError('policy_floor', `${kind}: ${note}: must be ${effect} whatever the data says, and is ${verdict.effect}.`);
  }
}

/** Table rows and probes, for the change from one bundle to another. */
function fixedQuestions(now: Bundle, next: Bundle, probes: readonly Probe[]): readonly Question[] {
  const rows = [...now.cases, ...next.cases].filter(({ settings }) => settings === undefined);
  const questions = [
    ...rows.map(({ kind, note, input }) => question(note, kind, input)),
    ...probes.map(({ note, input }) => question(note, String(input.kind), input)),
  ];
  return [...new Map(questions.map((one) => [one.text, one])).values()];
}

/** Recorded decisions whose question was kept. */
export function recordedQuestions(rows: readonly DecisionRow[]): readonly Question[] {
  return rows.flatMap(({ id, kind, input, decision }) =>
    input === undefined ? [] : [{ ...question(id, kind, safeRegoInput(input)), decided: decision }],
  );
}

/** What `next` answers differently from `now`; the order is that of the questions. */
export async function findFlips(questions: readonly Question[], now: Ask, next: Ask, running: PolicyDigests | undefined): Promise<Flip[]> {
  const flips: Flip[] = [];
  for (const [at, question] of questions.entries()) {
    if (at % SLICE === SLICE - 1) await turn();
    const { text, decided } = question;
    const sameSnapshot = decided !== undefined && running !== undefined && sameDigests(decided.digests, running);
    const flip = flipOf(question, sameSnapshot ? decided : now(text), next(text));
    if (flip !== undefined) flips.push(flip);
  }
  return flips;
}

/** How `next` differs from `now`: over table rows, probes and recorded decisions, and in what only its form can tell. */
export async function differenceBetween(now: Asked, next: Asked, recorded: readonly DecisionRow[]): Promise<Difference> {
  const { probes, unasked } = probeInputs(settingsOf(now.bundle), settingsOf(next.bundle));
  const questions = [...fixedQuestions(now.bundle, next.bundle, probes), ...recordedQuestions(recorded)];
  const ask = (one: Asked) => (text: string) => one.askAgain(text);
  const flips = await findFlips(questions, ask(now), ask(next), now.bundle.digests);
  return { flips, unjudged: [...unjudgedChanges(now.bundle, next.bundle), ...unasked] };
}

/** The difference between two answers to one question; undefined when there is none. */
export function flipOf({ of, kind, about }: Question, before: Outcome, after: Verdict): Flip | undefined {
  const looser = isLooser(before, after);
  if (!looser && !isLooser(after, before)) return undefined;
  return { of, kind, before: before.effect, after: after.effect, looser, codes: after.reasons.map(({ code }) => code), about };
}

/** @throws PolicyError `policy_widening`, with the first few reasons in its message */
export function refuseWidening({ flips, unjudged }: Difference): void {
  const looser = flips.filter((flip) => flip.looser);
  const reasons = [
    ...unjudged.map((change) => `${change}, which no question can judge`),
    ...looser.map(({ of, before, after }) => `${of}: ${before} → ${before === after ? `${after}, less bound` : after}`),
  ];
  if (reasons.length === 0) return;
  const more = reasons.length > 3 ? `; and ${reasons.length - 3} more` : '';
  const how = looser.length > 0 ? 'allows more' : 'may allow more';
  throw new PolicyError('policy_widening', `What is on disk ${how} than what runs: ${reasons.slice(0, 3).join('; ')}${more}.`, {
    hint: 'outwork policy apply --allow-widening --user NAME takes and lists it; outwork policy rollback goes back',
  });
}

const sameDigests = (a: PolicyDigests, b: PolicyDigests): boolean => a.rules === b.rules && a.data === b.data;

const settingsOf = (bundle: Bundle): unknown => (JSON.parse(bundle.dataJson) as { settings: unknown }).settings;

/** A question recorded under another contract is shown as it was. */
function safeRegoInput(input: PolicyInput): Readonly<Record<string, unknown>> {
  try {
    return toRegoInput(input);
  } catch {
    return input as unknown as Readonly<Record<string, unknown>>;
  }
}

const question = (of: string, kind: string, input: Readonly<Record<string, unknown>>): Question => ({
  of,
  kind,
  text: JSON.stringify(input),
  about: aboutOf(input),
});

/** What was asked, in a few words: the capability and its command, the request, the placement, the answer, the trigger. */
function aboutOf(input: Readonly<Record<string, unknown>>): Json {
  const { kind, capability, args, method, scheme, host, port, path, action, source, answer, placement } = input;
  const argv = (args as { argv?: unknown } | undefined)?.argv;
  switch (kind) {
    case 'call':
      return (Array.isArray(argv) ? `${capability} ${argv.join(' ')}` : `${capability}`).slice(0, 120);
    case 'egress':
      return `${method} ${scheme}://${host}:${port}${path}`.slice(0, 120);
    case 'trigger':
      return `${action} ${source}`;
    default:
      return String(answer ?? placement ?? kind ?? '');
  }
}

/**
 * A version never falls; where changes are signed each raises it, so that an old signature cannot be used again.
 * @throws PolicyError `policy_version`
 */
export function requireVersion({ digests }: Bundle, highest: number, signed: boolean): void {
  const wanted = signed ? highest + 1 : highest;
  if (highest > 0 && digests.version < wanted) {
    const message = `data/release.yaml states version ${digests.version}; version ${highest} was accepted, so at least ${wanted} is needed.`;
    throw new PolicyError('policy_version', message);
  }
}
