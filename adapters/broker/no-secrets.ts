import type { Broker } from '../../core/ports/broker.ts';

/** No secret is stored in this version; the port says so truthfully, and redaction has nothing to look for. */
export const noSecrets: Broker = { liveSecrets: () => [] };
