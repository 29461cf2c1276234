import type { CheckpointStore } from '../../../core/ports/store.ts';
import { firstIntact } from '../checkpoint-seal.ts';
import type { Memory } from './state.ts';

export function memoryCheckpoints({ state }: Memory): CheckpointStore {
  return {
    async latest(run) {
      const newestFirst = state.checkpoints.filter((one) => one.run === run && one.safe).reverse();
      return firstIntact(newestFirst, state.calls.filter((row) => row.run === run && row.state === 'done').length);
    },
  };
}
