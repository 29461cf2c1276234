import type { ModelGateway } from '../../core/seams/model-gateway.ts';

export interface CountingGateway extends ModelGateway {
  /** Calls so far, and the time between request and reply as the kernel saw it (monotonic). */
  counters(): { readonly calls: number; readonly wallMs: number };
}

/** Counts what a gateway costs; changes nothing. */
export function countingGateway(inner: ModelGateway): CountingGateway {
  let calls = 0;
  let wallMs = 0;
  return {
    async generate(request, context, signal, onDelta) {
      const begun = performance.now();
      calls += 1;
      try {
        return await inner.generate(request, context, signal, onDelta);
      } finally {
        wallMs += performance.now() - begun;
      }
    },
    counters: () => ({ calls, wallMs }),
  };
}
