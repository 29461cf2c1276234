import type { KernelEvent } from '../../core/events.ts';
import type { Run, RunState } from '../../core/run/types.ts';
import { printableLine } from '../printable.ts';
import type { Piece, Style } from './output.ts';

const STATE_STYLE: Readonly<Record<RunState, Style | undefined>> = {
  queued: 'dim',
  running: 'yellow',
  parked: 'yellow',
  cancelling: 'yellow',
  completed: 'green',
  failed: 'red',
  cancelled: 'dim',
};

export const stateStyle = (state: RunState): Style | undefined => STATE_STYLE[state];

/** A point in time as a person reads it, in UTC. */
export const timeText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`;

/** Why a run is where it is: its gate, its failure, or nothing. */
export function reasonOf(run: Run): string {
  if (run.gate !== undefined) return `${run.gate.kind} ${run.gate.ref}`;
  return run.failure ?? '';
}

/** Why a run failed, by the event that says so. */
export interface FailureCause {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** The cause in an event of a run's failure; undefined in any other, and where nothing more than the code is known. */
export function causeOf(event: KernelEvent | undefined): FailureCause | undefined {
  if (event?.type !== 'run.failed') return undefined;
  const [first] = Array.isArray(event.data.reasons) ? event.data.reasons : [];
  if (first === null || typeof first !== 'object' || Array.isArray(first)) return undefined;
  const { code, message, hint } = first as { readonly [name: string]: unknown };
  if (typeof code !== 'string' || typeof message !== 'string') return undefined;
  return typeof hint === 'string' ? { code, message, hint } : { code, message };
}

/** The last line of a command whose run parked; scripts read kind and id from it. */
export const gateLine = (run: Run): string => `parked: ${run.gate?.kind ?? 'unknown'} ${run.gate?.ref ?? run.id}`;

/** Longest data of an event in a line that no terminal bounds. */
const DATA_LENGTH = 300;

/** An event on one line of at most `columns`: when, what, whose, and as much of its small data as there is room for. */
export function eventLine(event: KernelEvent, options: { readonly withRun: boolean; readonly columns: number }): Piece[] {
  const data = Object.entries(event.data).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const whose = options.withRun && event.run !== undefined ? ` ${event.run}` : '';
  const style = /failed|denied|refused|unknown|lost/.test(event.type) ? 'red' : 'bold';
  const when = `${new Date(event.atMs).toISOString().slice(11, 23)} `;
  const room = Math.min(DATA_LENGTH, options.columns - when.length - event.type.length - whose.length - 1);
  return [
    { text: when, style: 'dim' },
    { text: event.type, style },
    whose,
    { text: data.length === 0 || room < 1 ? '' : ` ${clip(printableLine(data.join(' ')), room)}`, style: 'dim' },
  ];
}

export const clip = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length - 1).toWellFormed()}…`;
