import { CAPACITY, SAFETY } from '../../core/limits.ts';

/** Bounds of one sandbox's socket. Everything but the timings comes from `core/limits.ts`. */
export interface MembraneLimits {
  readonly bodyBytes: number;
  /** For operations that carry no content. */
  readonly smallBodyBytes: number;
  readonly depth: number;
  readonly headerBytes: number;
  /** Open connections; further ones are closed at once. */
  readonly connections: number;
  readonly requestsPerSecond: number;
  /** Requests that a socket which was quiet may make at once. */
  readonly burst: number;
  /** Body bytes that cost as much as one request. */
  readonly bytesPerRequest: number;
  readonly failedTokenCost: number;
  readonly streamBytes: number;
  readonly socketPathBytes: number;
  /** From the first byte of a request to the last of its head. */
  readonly headersTimeoutMs: number;
  /** From the first byte of a request to the last of its body. Handlers and responses are not bounded by it. */
  readonly requestTimeoutMs: number;
  /** How often the two timeouts are checked. */
  readonly timeoutCheckMs: number;
  readonly pingMs: number;
  /** A guest that takes nothing of what waits for it for so long loses its control stream. */
  readonly stallMs: number;
  /** How long past its own timeout, or past a cancel, a command may take to answer. */
  readonly answerGraceMs: number;
  readonly fileTimeoutMs: number;
}

export const MEMBRANE_LIMITS: MembraneLimits = {
  bodyBytes: SAFETY.membraneBodyBytes,
  smallBodyBytes: SAFETY.membraneSmallBodyBytes,
  depth: SAFETY.membraneDepth,
  headerBytes: SAFETY.membraneHeaderBytes,
  connections: SAFETY.membraneConnections,
  requestsPerSecond: SAFETY.membraneRequestsPerSecond,
  burst: SAFETY.membraneBurst,
  bytesPerRequest: SAFETY.membraneBytesPerRequest,
  failedTokenCost: SAFETY.failedTokenCost,
  streamBytes: SAFETY.membraneStreamBytes,
  socketPathBytes: SAFETY.socketPathBytes,
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  timeoutCheckMs: 1_000,
  pingMs: 15_000,
  stallMs: 30_000,
  answerGraceMs: CAPACITY.cancelGraceMs,
  fileTimeoutMs: 30_000,
};
