import { StoreError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';

/** Methods that write nothing. Any other one does. */
const READS: ReadonlySet<string> = new Set([
  'get',
  'list',
  'find',
  'findByToken',
  'messages',
  'unfinished',
  'parkedAt',
  'attempts',
  'lastSeats',
  'decisions',
  'spent',
  'since',
  'latest',
  'read',
  'last',
  'changed',
  'file',
]);

export interface FullDisk<S extends Store> {
  readonly store: S;
  /** While true every write is refused with `disk_full`, as the store that this one stands before refuses it. */
  full: boolean;
  /** Called before each write, which it may refuse. */
  onWrite: (method: string, given: readonly unknown[]) => void;
}

/** A store on a disk that a test fills and empties. */
export function fullDisk<S extends Store>(inner: S): FullDisk<S> {
  const disk: FullDisk<S> = { store: inner, full: false, onWrite: () => {} };
  const guarded = <Part extends object>(part: Part, name: string): Part =>
    new Proxy(part, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property);
        if (typeof value === 'object' && value !== null) return guarded(value, `${name}${String(property)}.`);
        if (typeof value !== 'function' || READS.has(String(property)) || `${name}${String(property)}` === 'close') return value;
        return async (...given: unknown[]) => {
          disk.onWrite(`${name}${String(property)}`, given);
          if (disk.full) throw new StoreError('disk_full', 'The disk is full; nothing was written', { retryable: true });
          return Reflect.apply(value, target, given);
        };
      },
    });
  return Object.assign(disk, { store: guarded(inner, '') });
}
