import type { CallReply, CallScope } from '../../core/capability/types.ts';
import { CallError } from '../../core/errors.ts';
import type { MembraneClient } from '../../core/wire/protocol.ts';
import type { MembraneService } from '../../core/wire/service.ts';
import { requireStorableText } from './storable-text.ts';

/**
 * The membrane for a loop that runs in the kernel's own process: the same operations, bound to one scope, without HTTP.
 * Such a loop can run no local command, so a permit is an error here.
 *
 * `call` and `callStream` throw CallError `dispatch_failed` on a permit, `progress` MembraneError `malformed` on text that cannot be
 * stored, and everything throws with the codes of `MembraneService`.
 */
export function bindInProcess(service: MembraneService, scope: CallScope): MembraneClient {
  return {
    context: () => service.context(scope),
    checkpoint: () => service.checkpoint(scope),
    call: async (request) => settled(await service.call(scope, request)),
    callStream: async (request, onDelta) => settled(await service.call(scope, request, onDelta)),
    progress: async (data) => {
      requireStorableText(data);
      await service.progress(scope, data);
    },
    steer: (afterSeq) => service.steer(scope, afterSeq),
  };
}

function settled(reply: CallReply): Exclude<CallReply, { effect: 'permit' }> {
  if (reply.effect !== 'permit') return reply;
  throw new CallError('dispatch_failed', `permit ${reply.permit.id} is for a local command, and this loop runs in the kernel`);
}
