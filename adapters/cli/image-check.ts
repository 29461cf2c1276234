import { ensureGuest } from '../../harnesses/guest/bundle.ts';
import { INIT_SCRIPT, imagesDirOf } from '../sandbox/bubblewrap/engine.ts';
import { textOfFaults } from '../sandbox/bubblewrap/image-keeper.ts';
import { checkImage } from '../sandbox/bubblewrap/image-store.ts';
import type { Check } from '../sandbox/check.ts';

/** Whether the image that the sandboxes of a state directory are made of is as it was built. Builds none: the next start does. */
export async function checkImageOf(stateDir: string): Promise<readonly Check[]> {
  const { file } = await ensureGuest();
  const sources = { guestBundle: file, initScript: INIT_SCRIPT, nodeBinary: process.execPath };
  const { dir, source, faults } = await checkImage({ imagesDir: imagesDirOf(stateDir), ...sources });
  const digest = source.slice(0, 12);
  if (dir !== undefined) return [{ id: 'image', ok: true, detail: `${dir}: every part is as built (${digest})` }];
  const wrong = faults.filter(({ why }) => why !== 'stale');
  if (wrong.length === 0) return [{ id: 'image', ok: true, detail: `not built yet from today's sources (${digest}); the next start does` }];
  const detail = `not as it was built: ${textOfFaults(wrong)}; the next start builds it again`;
  return [{ id: 'image', ok: false, warning: true, detail, fix: 'outwork sandbox image build' }];
}
