import type { Broker } from '../../core/ports/broker.ts';

/** No secret is stored in this version and no call has a recipe; the port says so truthfully, and redaction has nothing to look for. */
export const noSecrets: Broker = {
  liveSecrets: () => [],
  credentialOf: async () => ({ credential: 'none', recipe: '' }),
  isMissing: async () => false,
};
