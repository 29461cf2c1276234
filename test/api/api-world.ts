import { type ApiServer, serveApi } from '../../adapters/api/http/server.ts';
import { createMemoryStore } from '../../adapters/store/memory/store.ts';
import { tokenApprovals } from '../../core/approval/operations.ts';
import type { ApiConfig } from '../../core/config.ts';
import type { KernelGauges, KernelOperations, Readiness, Servable } from '../../core/kernel.ts';
import { authenticate, createOperations } from '../../core/kernel-operations.ts';
import type { ApprovalPolicyInput, Decision, PolicyInput } from '../../core/policy/types.ts';
import type { Store } from '../../core/ports/store.ts';
import { LiveRuns } from '../../core/run/live-runs.ts';
import type { Role } from '../../core/run/types.ts';
import type { LogFields, Logger } from '../../core/seams/logger.ts';
import { type ManualClock, manualClock } from '../membrane/manual-clock.ts';

export interface ApiWorld extends AsyncDisposable {
  readonly server: ApiServer;
  readonly store: Store;
  readonly clock: ManualClock;
  readonly kernel: KernelOperations & Servable;
  /** What the kernel says of itself; a test changes it. */
  readiness: Readiness;
  readonly logged: { readonly level: string; readonly fields: LogFields; readonly message: string }[];
  readonly requests: string[];
  /** Makes the user when it is new, and a token for it. */
  token(name: string, roles?: readonly Role[], tenant?: string): Promise<string>;
  call(method: string, path: string, options?: { token?: string; body?: unknown; headers?: Record<string, string> }): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: an answer's shape is what the tests check
  readonly json: any;
  readonly text: string;
}

export const HOUR = 3_600_000;

/** The real API over the real operations and the reference store, with time in the test's hand; only what executes runs is absent. */
export async function apiWorld(options: { api?: Partial<ApiConfig>; operations?: Partial<KernelOperations> } = {}): Promise<ApiWorld> {
  const clock = manualClock();
  const store = createMemoryStore();
  const policy = { status: () => ({ ready: true, digests: { rules: 'r', data: 'd' }, loadedAtMs: clock.now(), reloadFault: undefined }) };
  const gauges: KernelGauges = { runs: [], sandboxes: { starting: 0, busy: 0, idle: 0, stopping: 0 }, policy: policy.status() };
  const logged: { level: string; fields: LogFields; message: string }[] = [];
  const say = (level: string) => (fields: LogFields, message: string) => void logged.push({ level, fields, message });
  const log: Logger = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
  const requests: string[] = [];
  const self = {
    readiness: { store: undefined, policy: undefined, engine: undefined } as Readiness,
  };
  const decide = async (input: PolicyInput): Promise<Decision> => {
    const { kind, approver, actor } = input as ApprovalPolicyInput;
    const may = kind === 'approval' && approver.roles.includes('approver') && approver.user !== actor.user;
    const reasons = [{ code: may ? 'approver_answers' : 'no_rule_allows', message: may ? 'yes' : 'no' }];
    return { effect: may ? 'allow' : 'deny', reasons, obligations: [], digests: { rules: 'r', data: 'd' }, durationUs: 1 };
  };
  const rows = { store, clock, decide, wake: () => {} };
  const kernel: KernelOperations & Servable = {
    ...createOperations({ ...rows, config: { placement: 'host-loop-shell', tenants: {} }, policy, live: new LiveRuns(), runsPerUser: 1 }),
    ...tokenApprovals(rows),
    authenticate: (token) => authenticate({ store, clock }, token),
    readiness: async () => self.readiness,
    gauges: async () => gauges,
    ...options.operations,
  };
  const api: ApiConfig = { listen: '127.0.0.1:0', nonLoopback: undefined, hosts: [], metrics: 'operator', ...options.api };
  const server = await serveApi({
    ...{ kernel, config: { api }, version: '0.0.0-test', clock, log },
    metrics: {
      contentType: 'text/plain; version=0.0.4',
      text: async () => '# metrics\n',
      onRequest: (route, status) => void requests.push(`${route} ${status}`),
      onStreams: () => {},
    },
  });
  return Object.assign(self, {
    ...{ server, store, clock, kernel, logged, requests },
    async token(name: string, roles: readonly Role[] = ['user'], tenant = 'acme') {
      if ((await store.users.get(tenant, name)) === undefined) await kernel.addUser({ tenant, name, roles });
      return (await kernel.issueToken({ tenant, name, ttlMs: HOUR })).token;
    },
    async call(
      method: string,
      path: string,
      { token, body, headers = {} }: { token?: string; body?: unknown; headers?: Record<string, string> } = {},
    ) {
      const response = await fetch(`${server.url}${path}`, {
        method,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const json = response.headers.get('content-type')?.includes('json') === true ? JSON.parse(text) : undefined;
      return { status: response.status, headers: response.headers, json, text };
    },
    async [Symbol.asyncDispose]() {
      await server.close();
      await store.close();
    },
  });
}
