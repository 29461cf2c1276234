import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJsonBody } from '../../adapters/membrane/json-body.ts';
import { MembraneError } from '../../core/errors.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const codeOf = (text: string): string | undefined => {
  try {
    parseJsonBody(bytes(text), 32);
    return undefined;
  } catch (error) {
    if (error instanceof MembraneError) return error.code;
    throw error;
  }
};

describe('parseJsonBody', () => {
  it('gives what JSON.parse gives for any value that it may take, however it is written', () => {
    fc.assert(
      fc.property(fc.json({ depthSize: 'small', noUnicodeString: false } as never), fc.constantFrom(0, 1, 2), (text, space) => {
        const value: unknown = JSON.parse(text);
        fc.pre(!text.includes('__proto__'));
        expect(parseJsonBody(bytes(JSON.stringify(value, null, space)), 1000)).toEqual(value);
      }),
    );
  });

  it('throws a coded error and nothing else for any bytes', () => {
    const fragments = fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', 'a', '1', '\\u0061', 'null', ' ', '\ud800');
    fc.assert(
      fc.property(fc.array(fragments, { maxLength: 40 }), (parts) => {
        expect(['malformed', 'body_too_deep', undefined]).toContain(codeOf(parts.join('')));
      }),
    );
  });

  it('finds a repeated key at any place, and no other', () => {
    const object = fc.uniqueArray(
      fc.string({ minLength: 1 }).filter((key) => key !== '__proto__'),
      { minLength: 1, maxLength: 6 },
    );
    fc.assert(
      fc.property(object, fc.nat(), fc.boolean(), (keys, pick, repeat) => {
        const members = keys.map((key, i) => `${JSON.stringify(key)}:{"v:${i}":[${i},":"]}`);
        if (repeat) members.push(`${JSON.stringify(keys[pick % keys.length])}:0`);
        expect(codeOf(`[{${members.join(',')}}]`)).toBe(repeat ? 'malformed' : undefined);
      }),
    );
  });

  it('counts brackets outside strings only', () => {
    expect(codeOf(`{"a":"${'['.repeat(100)}\\"${'{'.repeat(100)}\\\\"}`)).toBeUndefined();
    expect(codeOf('['.repeat(33))).toBe('body_too_deep');
    expect(codeOf(`${'['.repeat(32)}${']'.repeat(32)}`)).toBeUndefined();
  });

  it('says nothing of the body in its message', () => {
    expect(() => parseJsonBody(bytes('{"password":hunter2}'), 32)).toThrow(/^the body is not JSON$/);
  });
});
