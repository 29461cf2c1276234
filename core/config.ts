import type { CAPACITY, Ceilings, RETENTION, SANDBOX_LIMITS } from './limits.ts';
import type { EngineName, PlacementName } from './run/types.ts';

export type CapacityName = keyof typeof CAPACITY;
export type LimitName = keyof typeof SANDBOX_LIMITS;
/** What one sandbox may use; units are part of the names. */
export type SandboxLimits = Readonly<Record<LimitName, number>>;

/** Days, by what is kept. */
export type Retention = Readonly<Record<keyof typeof RETENTION, number>>;

/** Configuration after parsing, defaults and checks; frozen. `adapters/config.ts` makes it and nothing else does. */
export interface CompiledConfig {
  /** File it came from; undefined when only defaults apply. */
  readonly file: string | undefined;
  readonly profile: 'development' | 'production';
  /** Absolute; 0700. */
  readonly stateDir: string;
  readonly engine: EngineName;
  readonly placement: PlacementName;
  /** How many runs of one user may be active at once. `serialize` is 1. */
  readonly runsPerUser: number;
  readonly harness: string;
  readonly model: { readonly gateway: 'scripted'; readonly scenario: string };
  readonly policy: {
    /** Bundle root: `policies/` of the package unless given. */
    readonly dir: string;
    /** Rules and data of the installation's own (`policies.dir`), compiled together with the bundle's. */
    readonly siteDir?: string;
    /** File of the Ed25519 public key (SPKI PEM) that must have signed rules and data; absent means that no signature is wanted. */
    readonly publicKey?: string;
    /** What the decision log keeps of a question beside its digest; absent means `redacted`. */
    readonly logInput?: 'digest' | 'redacted';
    /** Where set-up fetches OPA for this machine when it cannot build it, and what it must be; absent means nowhere. */
    readonly opa?: { readonly url: string; readonly sha256: string };
  };
  readonly capacity: Readonly<Record<CapacityName, number>>;
  readonly limits: SandboxLimits;
  /** Ceilings on the accounts of tenant, user and thread; absent means `CEILINGS`. */
  readonly ceilings?: Ceilings;
  /** How long is kept what is over, in days; absent means `RETENTION`. */
  readonly retention?: Retention;
  readonly tenants: Readonly<Record<string, TenantConfig>>;
  readonly log: { readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent' };
  readonly api: ApiConfig;
}

/** What `serve` listens on. */
export interface ApiConfig {
  /** `address:port`; port 0 takes a free one. */
  readonly listen: string;
  /** Why an address that is not loopback may be listened on; without a reason it may not. */
  readonly nonLoopback: string | undefined;
  /** Host names, beside loopback and the address itself, under which a request may come (a proxy in front). */
  readonly hosts: readonly string[];
  /** Who may read `/metrics`: `operator` needs a token of that role, `open` needs none and is for loopback only. */
  readonly metrics: 'operator' | 'open';
}

export interface TenantConfig {
  readonly placement: PlacementName | undefined;
  readonly users: Readonly<Record<string, { readonly placement: PlacementName | undefined }>>;
}

/** The one rule of switching: run → user → tenant → global. */
export function placementFor(
  config: Pick<CompiledConfig, 'placement' | 'tenants'>,
  who: { tenant: string; user: string; run?: PlacementName | undefined },
): PlacementName {
  const tenant = config.tenants[who.tenant];
  return who.run ?? tenant?.users[who.user]?.placement ?? tenant?.placement ?? config.placement;
}
