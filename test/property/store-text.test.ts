import fc from 'fast-check';
import { expect, test } from 'vitest';
import { T0 } from '../store/scene.ts';
import { sqliteWorld } from '../store/worlds.ts';

/** Characters that mean something to SQL, to the ORM's own placeholders, or to JSON, among any others. */
const sharp = fc.string({
  unit: fc.constantFrom("'", '"', '`', '\\', '?', ':', '$', '@', '%', '_', ';', '-', '{', '}', '\n', 'é', '𝄞', 'a'),
  maxLength: 12,
});
const text = fc
  .oneof(sharp, fc.string({ unit: 'grapheme', maxLength: 12 }))
  .filter((value) => !value.includes('\0') && value.isWellFormed());

test('S9 any other text is written and found again as it is, and as nothing else', async () => {
  const world = await sqliteWorld();
  const { store } = world;
  const known = new Map<string, { tenant: string; name: string }>();
  try {
    await fc.assert(
      fc.asyncProperty(text, text, text, async (tenant, name, body) => {
        const key = JSON.stringify([tenant, name]);
        if (!known.has(key)) await store.users.add({ tenant, name, roles: ['user'], nowMs: T0 });
        known.set(key, { tenant, name });
        expect(await store.users.get(tenant, name)).toMatchObject({ tenant, name });
        expect((await store.users.list(tenant)).every((user) => user.tenant === tenant)).toBe(true);
        const { thread, run } = await store.threads.post({ tenant, actor: name, origin: 'interactive', body, nowMs: T0, harness: body });
        expect(await store.threads.messages(thread.id, { limit: 1 })).toMatchObject([{ body, user: name }]);
        expect(await store.runs.get(run.id)).toMatchObject({ tenant, actor: name, harness: body });
        expect(await store.runs.get(body)).toBeUndefined();
        expect((await store.events.read(0, { tenant }, 1000)).every((event) => event.tenant === tenant)).toBe(true);
      }),
      { numRuns: 150 },
    );
    expect(await store.users.list()).toHaveLength(known.size);
  } finally {
    await world.dispose();
  }
});
