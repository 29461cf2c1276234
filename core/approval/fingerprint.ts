import { createHash } from 'node:crypto';
import type { CallKey } from '../capability/types.ts';
import { canonicalJson, type Json } from '../json.ts';
import type { PolicyDigests } from '../policy/types.ts';
import type { Ceiling, ReferencedFile, Shown } from './types.ts';

/** Everything that an approval is bound to. A call that differs in any of it is another call. */
export interface Bound {
  readonly tenant: string;
  readonly thread: string;
  readonly run: string;
  readonly key: CallKey;
  readonly actor: string;
  readonly capability: string;
  /** All of the arguments, as they will be carried out. */
  readonly args: Json;
  readonly ceiling: Ceiling;
  readonly digests: PolicyDigests;
  readonly files: readonly ReferencedFile[];
  readonly shown: Shown;
}

/**
 * SHA-256 over labelled parts, each name and each value preceded by its length in bytes: no text of one part can pass for a part of its
 * own, and `a:b` beside `c` differs from `a` beside `b:c` (BL-124). Values that are not text are canonical JSON, so the order of keys does
 * not matter and an absent value differs from null (BL-122).
 */
export function fingerprintOf(bound: Bound): string {
  const hash = createHash('sha256');
  const put = (text: string) => {
    const bytes = Buffer.from(text);
    hash.update(`${bytes.length}:`).update(bytes);
  };
  put('outwork.approval.1');
  const parts: readonly (readonly [name: string, value: string])[] = [
    ['tenant', bound.tenant],
    ['thread', bound.thread],
    ['run', bound.run],
    ['step', String(bound.key.step)],
    ['call', String(bound.key.call)],
    ['actor', bound.actor],
    ['capability', bound.capability],
    ['args', canonicalJson(bound.args)],
    ['ceiling', canonicalJson(bound.ceiling)],
    ['rules', bound.digests.rules],
    ['data', bound.digests.data],
    ['files', canonicalJson(bound.files)],
    ['shown', canonicalJson(bound.shown)],
  ];
  for (const [name, value] of parts) {
    put(name);
    put(value);
  }
  return hash.digest('hex');
}
