import { SAFETY } from '../../core/limits.ts';
import { systemClock } from '../../core/seams/clock.ts';
import type { Bundle } from './bundle.ts';
import { ServingSnapshot } from './serving-snapshot.ts';

/**
 * A snapshot that can be asked while `use` runs, within the bounds of a kernel and without one.
 * @throws PolicyError `policy_malformed` when the module or its data cannot be used
 */
export async function withServing<T>(bundle: Bundle, use: (serving: ServingSnapshot) => T | Promise<T>): Promise<T> {
  const { policyDeadlineMs: deadlineMs, policyMemoryBytes: memoryBytes } = SAFETY;
  const serving = await ServingSnapshot.start(bundle, { clock: systemClock, retryMs: 1000, deadlineMs, memoryBytes });
  try {
    return await use(serving);
  } finally {
    await serving.close();
  }
}
