import { PolicyError, UsageError } from '../errors.ts';
import type { ApiCaller } from '../kernel.ts';
import type { Decision, PolicyInput } from '../policy/types.ts';
import type { Store } from '../ports/store.ts';
import type { Clock } from '../seams/clock.ts';
import { type Answer, answerApproval, LOCAL_OPERATOR } from './answer.ts';
import { textOf } from './pinned-files.ts';
import type { Approval, ApprovalState, ReferencedFile } from './types.ts';
import { visible } from './visible-text.ts';

/** An ask with the text of what it pins, every character visible. */
export interface ApprovalView {
  readonly approval: Approval;
  readonly files: readonly (ReferencedFile & {
    /** The beginning of it; undefined when it is no text. */
    readonly text: string | undefined;
    readonly cut: boolean;
  })[];
}

export interface ApprovalFilter {
  readonly tenant?: string;
  readonly run?: string;
  readonly actor?: string;
  readonly states?: readonly ApprovalState[];
  readonly limit: number;
}

/** What people ask of asks. None of these says who answers: it is whoever has the door to them, the local operator. */
export interface ApprovalOperations {
  /** Newest first. */
  listApprovals(filter: ApprovalFilter): Promise<readonly Approval[]>;
  /** @throws UsageError `not_found` */
  showApproval(id: string): Promise<ApprovalView>;
  /**
   * Approves or denies as the local operator, when policy lets it; its run goes on.
   * @throws UsageError `not_found` `conflict`; ApprovalError `approval_refused` `approval_expired`; PolicyError where none can be loaded
   */
  answerApproval(answer: Answer): Promise<Approval>;
}

/** The same for callers with a token. Not one of the operations above: an approver is never named by a payload. */
export interface TokenApprovals {
  /** As `answerApproval`, as the user whom the token names, in that user's tenant only. */
  answerApprovalAs(caller: ApiCaller, answer: Answer): Promise<Approval>;
}

export interface ApprovalOperationsDeps {
  readonly store: Store;
  readonly clock: Clock;
  /** Says whether a person may answer. Absent where no policy can be asked: nobody can answer then. */
  readonly decide?: (input: PolicyInput) => Promise<Decision>;
  readonly logInput?: 'digest' | 'redacted';
  /** There may be a run to claim. */
  readonly wake: () => void;
}

/** Of one file this much is shown; its size and digest say the rest. */
const FILE_CHARACTERS = 64 * 1024;

export function approvalOperations(deps: ApprovalOperationsDeps): ApprovalOperations {
  const { store } = deps;
  return {
    listApprovals: (filter) => store.approvals.list(filter),
    async showApproval(id) {
      const approval = await store.approvals.get(id);
      if (approval === undefined) throw new UsageError('not_found', `No approval ${id}`);
      const files = await Promise.all(
        approval.files.map(async (file) => {
          const body = await store.approvals.file(file.sha256);
          const text = body === undefined ? undefined : textOf(Buffer.from(body, 'base64'));
          const cut = text !== undefined && text.length > FILE_CHARACTERS;
          return { ...file, text: text === undefined ? undefined : visible(cut ? text.slice(0, FILE_CHARACTERS) : text), cut };
        }),
      );
      return { approval, files };
    },
    answerApproval: (answer) => answerAs(deps, LOCAL_OPERATOR, answer),
  };
}

export function tokenApprovals(deps: ApprovalOperationsDeps): TokenApprovals {
  return {
    answerApprovalAs: (caller, answer) =>
      answerAs(deps, { tenant: caller.user.tenant, user: caller.user.name, roles: caller.user.roles }, answer),
  };
}

async function answerAs(deps: ApprovalOperationsDeps, approver: typeof LOCAL_OPERATOR, answer: Answer): Promise<Approval> {
  const { decide } = deps;
  if (decide === undefined) throw new PolicyError('policy_not_ready', 'No policy is loaded here that could let anyone answer.');
  const approval = await answerApproval({ ...deps, decide }, approver, answer);
  deps.wake();
  return approval;
}
