import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../core/seams/clock.ts';
import { bootId, killProcess, untilGone } from './processes.ts';
import type { SandboxRecords } from './records.ts';

/** Ends every recorded sandbox that is not `live` here, and removes the socket directories of all that are not. */
export async function sweepSandboxes(options: {
  readonly records: SandboxRecords;
  readonly socketsDir: string;
  readonly live: ReadonlySet<string>;
  readonly clock: Clock;
  /** Removes control groups; those named by a record, or by the generation of a start that left none. */
  readonly removeGroups: (generation: string, dirs: readonly string[]) => Promise<void>;
}): Promise<void> {
  const { records, socketsDir, live, clock, removeGroups } = options;
  const boot = await bootId();
  for (const { generation, record } of await records.list()) {
    if (live.has(generation)) continue;
    if (record !== undefined && record.bootId === boot) {
      for (const process of [record.init, record.monitor]) {
        await killProcess(process);
        await untilGone(process, clock);
      }
    }
    await removeGroups(generation, record?.groups ?? []);
    await rm(join(socketsDir, generation), { recursive: true, force: true });
    await records.remove(generation);
  }
  const left = await readdir(socketsDir).catch(() => []);
  for (const name of left) {
    if (live.has(name)) continue;
    await removeGroups(name, []);
    await rm(join(socketsDir, name), { recursive: true, force: true });
  }
}
