import { PolicyError, UsageError } from '../errors.ts';
import type { DecisionRow, Store } from '../ports/store.ts';
import type { KnownSnapshot, PolicyChange, PolicyControl, PolicyPerson } from './control.ts';

/** What people ask of the policy of a kernel. */
export interface PolicyOperations {
  /**
   * Loads what is on disk through every gate. What allows more needs `widen`: a person with the role `policy`.
   * @throws PolicyError `policy_widening` `policy_role_required` and those of loading
   */
  applyPolicy(request: { readonly widen?: PolicyPerson }): Promise<PolicyChange>;
  /** Makes an earlier snapshot run again. @throws PolicyError `policy_role_required`; UsageError `not_found` */
  rollBackPolicy(request: { readonly digest: string; readonly by: PolicyPerson }): Promise<PolicyChange>;
  /** Snapshots that can be rolled back to, newest first. */
  policySnapshots(): Promise<readonly KnownSnapshot[]>;
  /** @throws UsageError `not_found` */
  showDecision(id: string): Promise<DecisionRow>;
  /** The newest `limit` decisions made at `sinceMs` or later, oldest first. */
  listDecisions(sinceMs: number, limit: number): Promise<readonly DecisionRow[]>;
}

export function policyOperations(deps: {
  readonly store: Pick<Store, 'users' | 'decisions'>;
  readonly control?: PolicyControl;
}): PolicyOperations {
  const { store } = deps;
  const control = (): PolicyControl => {
    if (deps.control === undefined) throw new PolicyError('policy_not_ready', 'No policy is loaded here.');
    return deps.control;
  };
  const personOf = async ({ tenant, user }: PolicyPerson): Promise<string> => {
    const found = await store.users.get(tenant, user);
    if (found === undefined || found.disabled) throw new UsageError('not_found', `No user ${user} in tenant ${tenant}`);
    if (!found.roles.includes('policy')) {
      const hint = `outwork user add NAME --role policy`;
      throw new PolicyError('policy_role_required', `${user} has not the role policy, which this change needs.`, { hint });
    }
    return `${tenant}/${user}`;
  };
  return {
    async applyPolicy({ widen }) {
      return control().apply(widen === undefined ? {} : { widenBy: await personOf(widen) });
    },
    async rollBackPolicy({ digest, by }) {
      return control().rollBack({ digest, by: await personOf(by) });
    },
    policySnapshots: async () => control().snapshots(),
    async showDecision(id) {
      const row = await store.decisions.get(id);
      if (row === undefined) throw new UsageError('not_found', `No decision ${id}`);
      return row;
    },
    listDecisions: (sinceMs, limit) => store.decisions.since(sinceMs, limit),
  };
}
