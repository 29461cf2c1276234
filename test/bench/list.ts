import type { Figure } from './figure.ts';

/** Every bench by the name of its file. A test holds this list to the directory; nothing is loaded because it happens to lie there. */
export const BENCHES: Readonly<Record<string, () => Promise<readonly Figure[]>>> = {
  'durable-call': async () => (await import('./durable-call.ts')).benchDurableCall(),
  guest: async () => (await import('./guest.ts')).benchGuest(),
  membrane: async () => (await import('./membrane.ts')).benchMembrane(),
  neighbours: async () => (await import('./neighbours.ts')).benchNeighbours(),
  output: async () => (await import('./output.ts')).benchOutput(),
  policy: async () => (await import('./policy.ts')).benchPolicy(),
  sandbox: async () => (await import('./sandbox.ts')).benchSandbox(),
  soak: async () => (await import('./soak.ts')).benchSoak(),
  store: async () => (await import('./store.ts')).benchStore(),
  turn: async () => (await import('./turn.ts')).benchTurn(),
};

/** Files of this directory that are parts of a bench. */
export const BENCH_PARTS: readonly string[] = ['figure', 'list', 'main', 'membrane-load', 'policy-load', 'table'];
