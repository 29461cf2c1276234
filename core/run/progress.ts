import { eventOf } from '../capability/reply.ts';
import type { CallScope } from '../capability/types.ts';
import { canonicalJson, type Json } from '../json.ts';
import { neutralText } from '../leak/controls.ts';
import { EVIDENCE_TERMS, Scrubber } from '../leak/scrub.ts';
import type { Broker } from '../ports/broker.ts';
import type { EventStore } from '../ports/store.ts';
import type { Clock } from '../seams/clock.ts';

/** Shortest time between two progress events of one run. */
const INTERVAL_MS = 200;
/** Longer progress is replaced by a note of its size. */
const MAX_BYTES = 4096;

export interface ProgressDeps {
  readonly events: EventStore;
  readonly clock: Clock;
  readonly broker: Broker;
  /** Progress of a run that is not live any more may be lost: a closing kernel has closed its store. */
  readonly isLive?: (run: string) => boolean;
  readonly onError: (error: unknown) => void;
}

/** Commands of one run whose progress may wait at once; that of further ones is coalesced with the run's own. */
const MAX_LANES = 8;

/**
 * Coalesces progress: of what arrives within the interval, the newest becomes an event; the run's own, and that of each of its commands
 * (`data.command`), by itself. What it says was cut from more: it is scrubbed as such, and shown to people.
 */
export class ProgressLog {
  readonly #deps: ProgressDeps;
  readonly #waiting = new Map<string, Json>();

  constructor(deps: ProgressDeps) {
    this.#deps = deps;
  }

  add(scope: CallScope, data: Json): void {
    const bytes = Buffer.byteLength(canonicalJson(data));
    const bounded: Json = bytes <= MAX_BYTES ? shownProgress(data, this.#deps.broker.liveSecrets(scope)) : { bytes, dropped: true };
    const lane = this.#laneOf(scope.run, data);
    const first = !this.#waiting.has(lane);
    this.#waiting.set(lane, bounded);
    if (!first) return;
    this.#deps.clock.after(INTERVAL_MS, () => {
      const progress = this.#waiting.get(lane) ?? null;
      this.#waiting.delete(lane);
      this.#deps.events.append(eventOf(scope, 'run.progress', { progress }), this.#deps.clock.now()).catch((error: unknown) => {
        if (this.#deps.isLive?.(scope.run) !== false) this.#deps.onError(error);
      });
    });
  }

  #laneOf(run: string, data: Json): string {
    const command = (data as { command?: unknown } | null)?.command;
    const own = `${run}\0`;
    if (typeof command !== 'string' || command.length > 32) return own;
    const lane = `${own}${command}`;
    const waiting = [...this.#waiting.keys()].filter((key) => key.startsWith(own));
    return waiting.length < MAX_LANES || waiting.includes(lane) ? lane : own;
  }
}

function shownProgress(data: Json, secrets: readonly string[]): Json {
  const scrubbed = new Scrubber(secrets, EVIDENCE_TERMS).json(data, { edges: { start: true, end: true } });
  return neutralJson(scrubbed);
}

function neutralJson(value: Json): Json {
  if (typeof value === 'string') return neutralText(value);
  if (Array.isArray(value)) return value.map(neutralJson);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [neutralText(key), neutralJson(item)]));
}
