import { ApiError } from '../../../core/errors.ts';
import type { ApiCaller, Servable } from '../../../core/kernel.ts';
import { SAFETY } from '../../../core/limits.ts';
import type { Role } from '../../../core/run/types.ts';
import type { Clock } from '../../../core/seams/clock.ts';
import { Buckets } from './buckets.ts';

/** Refused for now; the same request may come again after so many seconds. */
export class RateLimited extends ApiError {
  readonly retryAfterS: number;

  constructor(retryAfterS: number) {
    super('rate_limited', `too many requests; again in ${retryAfterS} s`, { retryable: true });
    this.retryAfterS = retryAfterS;
  }
}

/** Who is let in: the token names the caller, the caller's role opens the route, and each token has its rate and its streams. */
export class Admission {
  readonly #kernel: Pick<Servable, 'authenticate'>;
  readonly #good: Buckets;
  readonly #others: Buckets;
  readonly #streams = new Map<string, number>();

  constructor({ kernel, clock }: { readonly kernel: Pick<Servable, 'authenticate'>; readonly clock: Clock }) {
    this.#kernel = kernel;
    this.#good = new Buckets({ clock, perSecond: SAFETY.apiRequestsPerSecond, burst: SAFETY.apiBurst });
    this.#others = new Buckets({ clock, perSecond: SAFETY.apiRefusedPerSecond, burst: SAFETY.apiRefusedBurst });
  }

  /** Event streams that are open. */
  get streams(): number {
    return [...this.#streams.values()].reduce((sum, count) => sum + count, 0);
  }

  /**
   * @returns the caller; undefined for a route that needs none
   * @throws ApiError `unauthenticated` (no, unknown, ended or revoked token), `forbidden` (none of the route's roles), `rate_limited`
   */
  async admit(authorization: string | undefined, roles: readonly Role[] | 'anyone'): Promise<ApiCaller | undefined> {
    if (roles === 'anyone') {
      this.#pay(this.#others, 'anyone');
      return undefined;
    }
    const caller = await this.#callerOf(authorization);
    if (caller === undefined) {
      // Paid for by a bucket of their own: those who guess do not slow down those who know.
      this.#pay(this.#others, 'refused');
      throw new ApiError('unauthenticated', 'a bearer token that counts is needed', { hint: 'outwork user token NAME' });
    }
    this.#pay(this.#good, caller.token);
    if (!roles.some((role) => caller.user.roles.includes(role))) {
      throw new ApiError('forbidden', `this needs the role ${roles.join(' or ')}`);
    }
    return caller;
  }

  /** Whether the token of a request that was admitted still counts. */
  async stillGood(authorization: string | undefined): Promise<boolean> {
    return (await this.#callerOf(authorization)) !== undefined;
  }

  /** Counts a stream. @returns takes it out again, once. @throws ApiError `too_many_streams` */
  enterStream({ token }: ApiCaller): () => void {
    const mine = this.#streams.get(token) ?? 0;
    if (mine >= SAFETY.apiStreamsPerToken || this.streams >= SAFETY.apiStreams) {
      throw new ApiError(
        'too_many_streams',
        `at most ${SAFETY.apiStreamsPerToken} event streams of one token, ${SAFETY.apiStreams} of all`,
      );
    }
    this.#streams.set(token, mine + 1);
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      const left = (this.#streams.get(token) ?? 1) - 1;
      if (left > 0) this.#streams.set(token, left);
      else this.#streams.delete(token);
    };
  }

  async #callerOf(authorization: string | undefined): Promise<ApiCaller | undefined> {
    const token = /^Bearer ([\w-]{1,200})$/i.exec(authorization ?? '')?.[1];
    return token === undefined ? undefined : this.#kernel.authenticate(token);
  }

  #pay(buckets: Buckets, key: string): void {
    const wait = buckets.take(key);
    if (wait === undefined) return;
    throw new RateLimited(wait);
  }
}
