import { describe, expect, it } from 'vitest';
import { SAFETY } from '../../core/limits.ts';
import { claimFault, claimsIn, unmarkedClaims } from '../architecture/doc-claims.ts';
import { read } from '../architecture/sources.ts';

const PAGE = 'harnesses/guest/SHELL.md';
const text = read(PAGE);
const headings = [...text.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading);

/** A constant of the guest, whose files nothing outside the sandbox imports values from. */
const constant = (file: string, name: string): string =>
  new RegExp(`const ${name} = ([^;]+);`).exec(read(`harnesses/guest/${file}`))?.[1] ?? '';

describe('the page of the shell', () => {
  it('every promise names a test that is there', () => {
    expect(claimsIn(PAGE, text).length).toBeGreaterThan(15);
    expect(claimsIn(PAGE, text).flatMap((claim) => claimFault(claim) ?? [])).toEqual([]);
    expect(unmarkedClaims(text, headings)).toEqual([]);
  });

  it('finding 6: its numbers are those of the code', () => {
    expect(text).toContain(`between ${SAFETY.outputFloorBytes.toLocaleString('en')} and ${SAFETY.outputBytes.toLocaleString('en')} bytes`);
    expect([constant('output-limit.ts', 'FLOOR_BYTES'), constant('output-limit.ts', 'CEILING_BYTES')]).toEqual(['1024', '1024 * 1024']);
    expect(text).toContain(`At most ${constant('background.ts', 'MAX_ALIVE')} are alive`);
    expect(text).toContain(`at most ${SAFETY.backgroundLifetimeMs / 3_600_000} hours`);
    expect(constant('background.ts', 'MAX_LIFETIME_MS')).toBe('24 * 3600 * 1000');
    expect([text.includes('(at most 64 KiB)'), constant('background-log.ts', 'TAIL_BYTES')]).toEqual([true, '64 * 1024']);
  });

  it('finding 12: nothing here calls a ceiling of users one of the tenant', () => {
    for (const file of ['core/capability/ceilings.ts', 'core/capability/reservations.ts', 'core/limits.ts', PAGE])
      expect(read(file), file).not.toMatch(/per[- ]tenant|tenant-level|tenant-wide/i);
  });

  it('control: a promise without a test is found', () => {
    expect(unmarkedClaims('# T\n\n## HOME\n\n- Promised.\n', ['HOME'])).toEqual(['- Promised.']);
  });
});
