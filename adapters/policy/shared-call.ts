import { SAFETY } from '../../core/limits.ts';

/**
 * Layout of the memory that the kernel and one policy worker share. The kernel writes a question, raises `ASKED` and sleeps on `ANSWERED`;
 * the worker sleeps on `ASKED`. Both count up, so an answer names its question.
 */
export const ASKED = 0;
export const ANSWERED = 1;
/** Number of the question the worker has begun with; its processor time at that moment is in `cpu`. */
export const BEGUN = 2;
export const QUESTION_BYTES = 3;
export const ANSWER_BYTES = 4;
/** One of `OUTCOMES`. */
export const OUTCOME = 5;
/** What is wanted: 0 an answer, `LOAD` that the rules and data of a message take the place of those that are there. */
export const WANTED = 6;
export const LOAD = 1;

export const OUTCOMES = ['answer', 'trap', 'memory', 'answer_too_large'] as const;
export type WorkerOutcome = (typeof OUTCOMES)[number];

const MAX_ANSWER_BYTES = 64 * 1024;

export interface SharedCall {
  readonly words: Int32Array<SharedArrayBuffer>;
  /** Processor time of the worker's thread in microseconds when it began. */
  readonly cpu: Float64Array<SharedArrayBuffer>;
  readonly question: Buffer;
  readonly answer: Buffer;
}

export const sharedCallBuffer = (): SharedArrayBuffer => new SharedArrayBuffer(64 + SAFETY.policyInputBytes + MAX_ANSWER_BYTES);

/** The views of one shared buffer. */
export function sharedCall(buffer: SharedArrayBuffer): SharedCall {
  return {
    words: new Int32Array(buffer, 0, 8),
    cpu: new Float64Array(buffer, 32, 1),
    question: Buffer.from(buffer as unknown as ArrayBuffer, 64, SAFETY.policyInputBytes),
    answer: Buffer.from(buffer as unknown as ArrayBuffer, 64 + SAFETY.policyInputBytes, MAX_ANSWER_BYTES),
  };
}
