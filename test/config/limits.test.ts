import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../adapters/config/file.ts';
import { defaultLimits, LIMIT_RANGE } from '../../adapters/config/schema.ts';

const refusal = (text: string): string => {
  try {
    parseConfig(text, 'outwork.yaml');
    return 'accepted';
  } catch (error) {
    return `${(error as { code: string }).code} ${(error as Error).message}`;
  }
};

describe('limits of a sandbox in the configuration', () => {
  it('each has a range, its default lies in it, and what lies outside is refused by name', () => {
    for (const [key, [low, high]] of Object.entries(LIMIT_RANGE)) {
      const value = defaultLimits()[key as keyof typeof LIMIT_RANGE];
      expect(value >= low && value <= high, key).toBe(true);
      expect(refusal(`limits: {${key}: ${high + 1}}`)).toContain(`limits.${key}:`);
      expect(refusal(`limits: {${key}: ${low - 1}}`)).toContain(`limits.${key}:`);
      expect(refusal(`limits: {${key}: ${low}}`)).toBe('accepted');
    }
  });

  it('only processors come in parts; a limit that does not exist is an unknown key', () => {
    expect(refusal('limits: {cpus: 1.5}')).toBe('accepted');
    expect(refusal('limits: {pids: 64.5}')).toContain('config_malformed');
    expect(refusal('limits: {memory: 64}')).toContain('config_unknown_key');
  });
});
