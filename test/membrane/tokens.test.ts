import { type CryptoKey, generateKeyPair, SignJWT } from 'jose';
import { beforeEach, describe, expect, it } from 'vitest';
import { createRunTokens } from '../../adapters/membrane/tokens.ts';
import type { RunTokens } from '../../core/seams/run-tokens.ts';
import { runClaims } from './harness.ts';
import { type ManualClock, manualClock } from './manual-clock.ts';

let clock: ManualClock;
let tokens: RunTokens;
beforeEach(async () => {
  clock = manualClock();
  tokens = await createRunTokens({ clock });
});
const minute = 60_000;
const sandboxClaims = { kind: 'sandbox', tenant: 'acme', user: 'ada', sandbox: 'gen-ada' } as const;
const payload = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

describe('T1 verify', () => {
  it('gives back exactly the claims that were minted', async () => {
    expect(await tokens.verify(await tokens.mint(runClaims('ada', 3), clock.now() + minute))).toEqual(runClaims('ada', 3));
    expect(await tokens.verify(await tokens.mint(sandboxClaims, clock.now() + minute))).toEqual(sandboxClaims);
  });

  it('gives every token an id of its own', async () => {
    const [a, b] = [await tokens.mint(sandboxClaims, clock.now() + minute), await tokens.mint(sandboxClaims, clock.now() + minute)];
    expect(payload(a).jti).not.toBe(payload(b).jti);
  });

  it('ends a token at its millisecond, cached or not', async () => {
    const endMs = clock.now() + 1_500;
    const cached = await tokens.mint(runClaims('ada'), endMs);
    const fresh = await tokens.mint(runClaims('ada'), endMs);
    expect(await tokens.verify(cached)).toBeDefined();
    clock.advance(1_499);
    expect(await tokens.verify(cached)).toBeDefined();
    clock.advance(1);
    expect(await tokens.verify(cached)).toBeUndefined();
    expect(await tokens.verify(fresh)).toBeUndefined();
  });

  it('refuses any changed character of a token', async () => {
    const token = await tokens.mint(sandboxClaims, clock.now() + minute);
    // The last character of a base64url part may carry unused bits; all others are significant.
    for (let i = 0; i < token.length - 1; i += 7) {
      const changed = token.slice(0, i) + (token[i] === 'A' ? 'B' : 'A') + token.slice(i + 1);
      expect(await tokens.verify(changed), `character ${i}`).toBeUndefined();
    }
    expect(await tokens.verify(token)).toBeDefined();
  });

  it('refuses the keys of another process, and the key itself cannot be had', async () => {
    const other = await createRunTokens({ clock });
    expect(await tokens.verify(await other.mint(sandboxClaims, clock.now() + minute))).toBeUndefined();
    expect(Object.values(tokens).every((value) => typeof value === 'function')).toBe(true);
  });

  it.each(['', '.', '..', 'a.b.c', 'x'.repeat(100_000)])('refuses what is no token: %.20s', async (text) => {
    expect(await tokens.verify(text)).toBeUndefined();
  });
});

describe('T1 the header is judged before anything is believed', () => {
  const forge = async (header: object, key: CryptoKey | Uint8Array) =>
    new SignJWT({ ...sandboxClaims })
      .setProtectedHeader(header as never)
      .setIssuer('outwork/kernel')
      .setAudience('outwork/membrane')
      .setJti('tok_1')
      .setIssuedAt()
      .setExpirationTime(clock.now() / 1000 + 60)
      .sign(key);

  it('refuses HMAC under a guessed key, and EdDSA under a key the header brings along', async () => {
    expect(await tokens.verify(await forge({ alg: 'HS256', typ: 'outwork-sandbox+jwt' }, new Uint8Array(32)))).toBeUndefined();
    const { privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
    expect(await tokens.verify(await forge({ alg: 'EdDSA', typ: 'outwork-sandbox+jwt' }, privateKey))).toBeUndefined();
  });
});

describe('T2 revocation', () => {
  it('ends the tokens of a run below a fence, cached or not, and no other', async () => {
    const old = await tokens.mint(runClaims('ada', 1), clock.now() + minute);
    const unseen = await tokens.mint(runClaims('ada', 1), clock.now() + minute);
    const current = await tokens.mint(runClaims('ada', 2), clock.now() + minute);
    const other = await tokens.mint(runClaims('bob', 1), clock.now() + minute);
    expect(await tokens.verify(old)).toBeDefined();
    tokens.revoke({ run: 'run-ada', belowFence: 2 });
    expect(await tokens.verify(old)).toBeUndefined();
    expect(await tokens.verify(unseen)).toBeUndefined();
    expect(await tokens.verify(current)).toBeDefined();
    expect(await tokens.verify(other)).toBeDefined();
  });

  it('a later revocation with a lower fence takes nothing back', async () => {
    const token = await tokens.mint(runClaims('ada', 1), clock.now() + minute);
    tokens.revoke({ run: 'run-ada', belowFence: 5 });
    tokens.revoke({ run: 'run-ada', belowFence: 1 });
    expect(await tokens.verify(token)).toBeUndefined();
  });

  it('ends every token of a sandbox, its runs included', async () => {
    const own = await tokens.mint(sandboxClaims, clock.now() + minute);
    const run = await tokens.mint(runClaims('ada'), clock.now() + minute);
    tokens.revoke({ sandbox: 'gen-ada' });
    expect([await tokens.verify(own), await tokens.verify(run)]).toEqual([undefined, undefined]);
  });

  it('holds against a verification that was under way', async () => {
    const token = await tokens.mint(runClaims('ada', 1), clock.now() + minute);
    const verifying = tokens.verify(token);
    tokens.revoke({ run: 'run-ada', belowFence: 2 });
    expect(await verifying).toBeUndefined();
    expect(await tokens.verify(token)).toBeUndefined();
  });

  it('is remembered for as long as a revoked token could live, whatever else is revoked meanwhile', async () => {
    const token = await tokens.mint(runClaims('ada', 1), clock.now() + minute);
    tokens.revoke({ run: 'run-ada', belowFence: 2 });
    clock.advance(minute - 1);
    tokens.revoke({ sandbox: 'another' });
    expect(await tokens.verify(token)).toBeUndefined();
  });
});
