import { StoreError } from '../../../core/errors.ts';
import type { DeliveryRow, DeliveryStore } from '../../../core/ports/store.ts';
import { deliveryUnknown } from '../own-events.ts';
import { requireStorable } from '../storable.ts';
import { append, type Memory, replace } from './state.ts';

type Kept = DeliveryRow & { readonly sender: string | undefined };

const shown = ({ sender: _, ...row }: Kept): DeliveryRow => row;

const isOpen = (row: Kept): boolean => row.state === 'prepared' || row.state === 'sending';

export function memoryDeliveries(memory: Memory): DeliveryStore {
  const { deliveries } = memory.state;
  return {
    async next(nowMs) {
      const first = deliveries.filter((row) => isOpen(row) && row === deliveries.find((one) => isOpen(one) && one.thread === row.thread));
      const [next] = first.filter((row) => row.state === 'prepared').sort((a, b) => a.attempts - b.attempts);
      if (next === undefined) return undefined;
      const { instance: sender } = memory;
      return shown(replace(deliveries, next, { ...next, state: 'sending', sender, attempts: next.attempts + 1, updatedAtMs: nowMs }));
    },
    async finish(id, to, event, nowMs) {
      requireStorable([id, event]);
      const row = deliveries.find((one) => one.id === id);
      if (row === undefined) throw new StoreError('not_found', `There is no delivery ${id}`);
      if (row.state !== 'sending') throw new StoreError('conflict', 'The delivery is not being sent');
      append(memory, event, nowMs);
      return shown(replace(deliveries, row, { ...row, state: to, sender: undefined, updatedAtMs: nowMs }));
    },
    async sweep(nowMs) {
      const left = deliveries.filter((row) => row.state === 'sending' && row.sender !== memory.instance);
      return left.map((row) => {
        const swept = shown(replace(deliveries, row, { ...row, state: 'unknown', sender: undefined, updatedAtMs: nowMs }));
        append(memory, deliveryUnknown(swept), nowMs);
        return swept;
      });
    },
    async list({ tenant, run, states, limit }) {
      return deliveries
        .filter((row) => tenant === undefined || row.tenant === tenant)
        .filter((row) => run === undefined || row.run === run)
        .filter((row) => states === undefined || states.includes(row.state))
        .map(shown)
        .reverse()
        .slice(0, limit);
    },
  };
}
