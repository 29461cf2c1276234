import { eventOf } from '../capability/call.ts';
import { evidenceJson } from '../capability/redact.ts';
import type { CallScope } from '../capability/types.ts';
import { canonicalJson, type Json } from '../json.ts';
import type { Broker } from '../ports/broker.ts';
import type { EventStore } from '../ports/store.ts';
import type { Clock } from '../seams/clock.ts';

/** Shortest time between two progress events of one run. */
const INTERVAL_MS = 200;
/** Longer progress is replaced by a note of its size. */
const MAX_BYTES = 4096;

/** Coalesces progress: of what arrives within the interval, the newest becomes an event. */
export class ProgressLog {
  readonly #deps: {
    readonly events: EventStore;
    readonly clock: Clock;
    readonly broker: Broker;
    readonly onError: (error: unknown) => void;
  };
  readonly #waiting = new Map<string, Json>();

  constructor(deps: { events: EventStore; clock: Clock; broker: Broker; onError: (error: unknown) => void }) {
    this.#deps = deps;
  }

  add(scope: CallScope, data: Json): void {
    const bytes = Buffer.byteLength(canonicalJson(data));
    const bounded: Json = bytes <= MAX_BYTES ? evidenceJson(data, this.#deps.broker.liveSecrets(scope)) : { bytes, dropped: true };
    const first = !this.#waiting.has(scope.run);
    this.#waiting.set(scope.run, bounded);
    if (!first) return;
    this.#deps.clock.after(INTERVAL_MS, () => {
      const progress = this.#waiting.get(scope.run) ?? null;
      this.#waiting.delete(scope.run);
      this.#deps.events.append(eventOf(scope, 'run.progress', { progress }), this.#deps.clock.now()).catch(this.#deps.onError);
    });
  }
}
