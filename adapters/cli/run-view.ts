import type { RunView } from '../../core/kernel.ts';
import { printableLine } from '../printable.ts';
import { causeOf, clip, reasonOf, stateStyle, timeText } from './describe.ts';
import { type Field, printFields } from './fields.ts';
import type { Output } from './output.ts';
import { type Column, printTable } from './table.ts';

/** Columns from which ids of calls have room beside what they did. */
const WIDE = 140;
/** Least width of what a call did; less says nothing. */
const LEAST_WHAT = 16;

/**
 * One run for a person who asks why it does not move: first its state and what has to happen next, then what holds it, then its history.
 * @param nowMs to say how long ago something was
 */
export function printRunView(out: Output, view: RunView, nowMs: number): void {
  const { run, attempts, lastEvent, next } = view;
  const style = stateStyle(run.state);
  out.line({ text: run.id, style: 'bold' }, '  ', style === undefined ? run.state : { text: run.state, style }, failureOf(view));
  const attempt = attempts.at(-1);
  const cause = causeOf(lastEvent);
  const fields: (Field | undefined)[] = [
    { name: 'next', value: next, style: run.endedAtMs === undefined ? 'bold' : undefined },
    cause && { name: 'why', value: printableLine(`${cause.message} (${cause.code})`) },
    cause?.hint === undefined ? undefined : { name: 'hint', value: printableLine(cause.hint), style: 'bold' },
    run.gate && { name: 'gate', value: `${run.gate.kind} ${run.gate.ref}\n${printableLine(run.gate.reason)}` },
    run.leaseHolder === undefined
      ? undefined
      : { name: 'lease', value: `attempt ${run.fence} of ${run.leaseHolder}, ${untilText(run.leaseUntilMs ?? 0, nowMs)}` },
    lastEvent && { name: 'last event', value: `${lastEvent.type}, ${agoText(lastEvent.atMs, nowMs)} (cursor ${lastEvent.cursor})` },
    run.cancelRequested ? { name: 'cancel', value: 'was asked for' } : undefined,
    { name: 'user', value: `${run.tenant}/${run.actor} (${run.origin})` },
    { name: 'thread', value: run.thread },
    attempt && { name: 'seat', value: attempt.placement === undefined ? 'none yet' : `${attempt.placement} on ${attempt.engine}` },
    { name: 'created', value: `${timeText(run.createdAtMs)}, ${agoText(run.createdAtMs, nowMs)}` },
    run.endedAtMs === undefined
      ? undefined
      : { name: 'ended', value: `${timeText(run.endedAtMs)}, after ${lengthText(run.endedAtMs - run.createdAtMs)}` },
    run.reclaims === 0 ? undefined : { name: 'lost', value: `${run.reclaims} ${run.reclaims === 1 ? 'attempt' : 'attempts'}` },
  ];
  printFields(
    out,
    fields.filter((field) => field !== undefined),
  );
  if (attempts.length > 1) printAttempts(out, view);
  if (view.calls.length > 0) printCalls(out, view);
}

const failureOf = ({ run }: RunView): string => (run.failure === undefined ? '' : `  ${reasonOf(run)}`);

function printAttempts(out: Output, { attempts }: RunView): void {
  type Row = (typeof attempts)[0];
  out.line('');
  const columns: Column<Row>[] = [
    { title: 'ATTEMPT', value: ({ fence }) => String(fence) },
    { title: 'STARTED', value: ({ startedAtMs }) => timeText(startedAtMs) },
    { title: 'PLACEMENT', value: ({ placement }) => placement ?? 'no seat' },
    { title: 'OUTCOME', value: ({ outcome }) => outcome ?? 'open' },
  ];
  printTable(out, columns, attempts, '');
}

function printCalls(out: Output, { calls, decisions }: RunView): void {
  type Row = (typeof calls)[0];
  out.line('');
  const decided = new Map(decisions.map((row) => [row.id, row.decision.effect]));
  const columns: Column<Row>[] = [
    { title: 'CALL', value: ({ key }) => `${key.step}.${key.call}` },
    { title: 'CAPABILITY', value: ({ capability }) => capability },
    { title: 'STATE', value: ({ state }) => state, style: ({ state }) => (state === 'unknown' ? 'red' : undefined) },
    { title: 'CLASS', value: ({ effectClass }) => effectClass },
    { title: 'DECISION', value: ({ decision }) => decided.get(decision) ?? '' },
    ...(out.columns >= WIDE ? [{ title: 'ID', value: ({ id }: Row) => id }] : []),
  ];
  const taken = columns.reduce((sum, { title, value }) => sum + Math.max(title.length, ...calls.map((row) => value(row).length)) + 2, 0);
  const room = Math.max(LEAST_WHAT, Math.min(80, out.columns - taken));
  printTable(out, [...columns, { title: 'WHAT', value: ({ summary }) => clip(printableLine(summary), room) }], calls, '');
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

/** A length of time in its largest unit. */
export function lengthText(ms: number): string {
  const [unit, size] = UNITS.find(([, least]) => ms >= least) ?? ['ms', 1];
  return `${Math.floor(Math.max(0, ms) / size)} ${unit}`;
}

const agoText = (atMs: number, nowMs: number): string => (nowMs - atMs < 1000 ? 'just now' : `${lengthText(nowMs - atMs)} ago`);

const untilText = (atMs: number, nowMs: number): string =>
  atMs <= nowMs ? `over since ${lengthText(nowMs - atMs)}` : `${lengthText(atMs - nowMs)} left`;
