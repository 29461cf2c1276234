import type { Harness } from '../../core/wire/protocol.ts';
import { scriptedHarness } from '../scripted/harness.ts';

/** The agent programs that are our own guest code. Nothing is loaded by name from anywhere else. */
export const HARNESSES: { readonly [name: string]: Harness } = { scripted: scriptedHarness };
