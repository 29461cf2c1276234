import type { Egress } from '../../core/ports/egress.ts';

/** Nothing leaves a sandbox in this version: it has no interface but loopback, and no request can be open. */
export const noEgress: Egress = { revoke: () => Promise.resolve(), openRequests: () => 0 };
