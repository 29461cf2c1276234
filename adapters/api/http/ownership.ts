import type { ApprovalFilter } from '../../../core/approval/operations.ts';
import type { Approval } from '../../../core/approval/types.ts';
import { UsageError } from '../../../core/errors.ts';
import type { KernelEvent } from '../../../core/events.ts';
import type { ApiCaller, KernelOperations } from '../../../core/kernel.ts';
import type { Run } from '../../../core/run/types.ts';

/** An operator sees everything; everybody else what acts for them, in their own tenant. What is not theirs does not exist for them. */
export const seesAll = ({ user }: ApiCaller): boolean => user.roles.includes('operator');

const isOwn = ({ user }: ApiCaller, run: Run): boolean => run.tenant === user.tenant && run.actor === user.name;

/** @throws UsageError `not_found`, in the same words for a run of somebody else and for none */
export async function visibleRun(kernel: KernelOperations, caller: ApiCaller, id: string): Promise<Run> {
  const run = await kernel.getRun(id).catch((error: unknown) => {
    if (error instanceof UsageError && error.code === 'not_found') return undefined;
    throw error;
  });
  if (run === undefined || !(seesAll(caller) || isOwn(caller, run))) throw new UsageError('not_found', `No run ${id}`);
  return run;
}

/** Whose asks the caller sees: an operator all, an approver those of the tenant, everybody else their own. */
export function seesAsks(caller: ApiCaller): Pick<ApprovalFilter, 'tenant' | 'actor'> {
  const { tenant, name, roles } = caller.user;
  if (seesAll(caller)) return {};
  return roles.includes('approver') ? { tenant } : { tenant, actor: name };
}

/** @throws UsageError `not_found`, in the same words for an ask that is not the caller's to see and for none */
export async function visibleApproval(kernel: KernelOperations, caller: ApiCaller, id: string): Promise<Approval> {
  const view = await kernel.showApproval(id).catch((error: unknown) => {
    if (error instanceof UsageError && error.code === 'not_found') return undefined;
    throw error;
  });
  const { tenant, actor } = seesAsks(caller);
  const approval = view?.approval;
  if (approval === undefined || (tenant ?? approval.tenant) !== approval.tenant || (actor ?? approval.actor) !== approval.actor)
    throw new UsageError('not_found', `No approval ${id}`);
  return approval;
}

/** The tenant of a thread that the caller takes part in: one of its runs acts for them. @throws UsageError `not_found` */
export async function visibleThread(kernel: KernelOperations, caller: ApiCaller, id: string): Promise<string> {
  const { tenant, name } = caller.user;
  const own = seesAll(caller) ? {} : { tenant, actor: name };
  const [run] = await kernel.listRuns({ thread: id, ...own, limit: 1 });
  if (run === undefined) throw new UsageError('not_found', `No thread ${id}`);
  return run.tenant;
}

/** Runs whose actor is remembered by one reader of events. */
const REMEMBERED = 1000;

/** Whether an event is the caller's to see: an operator's all, else those of own runs. */
export function visibleEvents(kernel: KernelOperations, caller: ApiCaller): (event: KernelEvent) => Promise<boolean> {
  if (seesAll(caller)) return () => Promise.resolve(true);
  const known = new Map<string, boolean>();
  return async ({ tenant, run }) => {
    if (run === undefined || tenant !== caller.user.tenant) return false;
    const remembered = known.get(run);
    if (remembered !== undefined) return remembered;
    const own = isOwn(caller, await kernel.getRun(run));
    if (known.size >= REMEMBERED) known.delete(known.keys().next().value as string);
    known.set(run, own);
    return own;
  };
}
