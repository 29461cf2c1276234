import { existsSync } from 'node:fs';
import { nearestExisting } from '../config/place.ts';
import { databaseFile, stateDirFault } from '../config/state-dir.ts';
import type { Check } from '../sandbox/check.ts';
import { isShort, roomIn } from '../sandbox/disk/guard.ts';
import { spaceOf } from '../sandbox/disk/space.ts';

/** Whether a kernel can use this state directory: the directory itself, its database, and room. Makes nothing. */
export async function checkState(stateDir: string, diskReserveMiB: number): Promise<readonly Check[]> {
  const fault = stateDirFault(stateDir);
  if (fault !== undefined) return [{ id: 'state', ok: false, detail: `${stateDir} ${fault.message}`, fix: fault.fix }];
  return [
    { id: 'state', ok: true, detail: stateDir },
    await databaseCheck(databaseFile(stateDir)),
    await roomCheck(stateDir, diskReserveMiB),
  ];
}

async function databaseCheck(file: string): Promise<Check> {
  const { databaseFault } = await import('../store/mikro-orm/database-health.ts');
  const fault = databaseFault(file);
  if (fault !== undefined)
    return { id: 'database', ok: false, detail: `${file}: ${fault.message}`, ...(fault.hint && { fix: fault.hint }) };
  return { id: 'database', ok: true, detail: existsSync(file) ? file : `${file} is made at first use` };
}

/** Below the reserve no sandbox starts; with no room at all nothing can be written down, and so nothing is done. */
async function roomCheck(stateDir: string, reserveMiB: number): Promise<Check> {
  const space = await spaceOf(nearestExisting(stateDir));
  const check = { id: 'disk', ok: !isShort(space, reserveMiB * 1024 * 1024), detail: `${roomIn(space)} free, ${reserveMiB} MiB are kept` };
  return check.ok ? check : { ...check, fix: 'free space there, or lower limits.diskReserveMiB' };
}
