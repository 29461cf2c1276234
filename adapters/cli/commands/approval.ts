import type { ApprovalView } from '../../../core/approval/operations.ts';
import type { Approval, ApprovalState } from '../../../core/approval/types.ts';
import { type CommandContext, withOperations } from '../context.ts';
import { clip, timeText } from '../describe.ts';
import { EXIT } from '../exit-code.ts';
import type { Output, Style } from '../output.ts';
import { printTable } from '../table.ts';

export interface ApprovalListOptions {
  readonly tenant?: string;
  readonly run?: string;
  readonly in?: readonly ApprovalState[];
  readonly limit: number;
}

const STYLE: Readonly<Record<ApprovalState, Style>> = {
  pending: 'yellow',
  approved: 'green',
  denied: 'red',
  expired: 'dim',
  consumed: 'dim',
  withdrawn: 'dim',
};

/** Asks, newest first; without `--in` those that wait for an answer. */
export async function approvalList(context: CommandContext, options: ApprovalListOptions): Promise<number> {
  const { tenant, run, in: states = ['pending'], limit } = options;
  const { out } = context;
  const filter = { ...(tenant === undefined ? {} : { tenant }), ...(run === undefined ? {} : { run }), states, limit };
  const approvals = await withOperations(context, (kernel) => kernel.listApprovals(filter));
  if (out.json) {
    out.document(approvals);
    return EXIT.good;
  }
  const columns = [
    { title: 'APPROVAL', value: ({ id }: Approval) => id },
    { title: 'STATE', value: (one: Approval) => one.state, style: (one: Approval) => STYLE[one.state] },
    { title: 'USER', value: ({ tenant: of, actor }: Approval) => `${of}/${actor}` },
    { title: 'UNTIL', value: (one: Approval) => timeText(one.useByMs ?? one.expiresAtMs) },
    { title: '!', value: ({ shown }: Approval) => (shown.warnings.length === 0 ? '' : String(shown.warnings.length)) },
    { title: 'WHAT', value: (one: Approval) => `${one.capability}: ${clip(headOf(one), 60)}` },
  ];
  printTable(out, columns, approvals, 'no approvals');
  return EXIT.good;
}

/** The line of the page that says what is to be done. */
const headOf = ({ shown }: Approval): string =>
  (shown.text.split('\n').find((line) => /^(Command|path|body):/.test(line)) ?? '').replace(/^\w+: /, '');

/** All that an approver is shown, what it pins, and what has become of it. */
export async function approvalShow(context: CommandContext, id: string): Promise<number> {
  const view = await withOperations(context, (kernel) => kernel.showApproval(id));
  if (context.out.json) context.out.document(view);
  else printView(context.out, view);
  return EXIT.good;
}

function printView(out: Output, { approval, files }: ApprovalView): void {
  const { id, state, shown, run, thread, fingerprint, createdAtMs, expiresAtMs, useByMs, answeredBy, answeredAtMs, note } = approval;
  out.line({ text: id, style: 'bold' }, ' ', { text: state, style: STYLE[state] }, ` ${run} on ${thread}`);
  const warned = new Set(shown.warnings.map(({ message }) => `Warning: ${message}`));
  for (const line of shown.text.split('\n')) out.line(warned.has(line) ? { text: line, style: 'red' } : line);
  for (const { path, text, cut } of files) {
    out.line({ text: `--- ${path}`, style: 'bold' });
    out.line(text ?? '(no text)');
    if (cut) out.line({ text: '--- and more: the size and the digest above are of the whole file', style: 'red' });
  }
  out.line({ text: `asked ${timeText(createdAtMs)}, to be answered until ${timeText(expiresAtMs)}`, style: 'dim' });
  if (answeredBy !== undefined)
    out.line(`answered by ${answeredBy} at ${timeText(answeredAtMs ?? 0)}${note === undefined ? '' : `: ${note}`}`);
  if (state === 'approved') out.line(`to be used until ${timeText(useByMs ?? 0)}`);
  out.line({ text: `fingerprint ${fingerprint}`, style: 'dim' });
  if (state === 'pending') out.note(`outwork approval approve ${id} | outwork approval deny ${id}`);
}

export interface AnswerOptions {
  readonly note?: string;
}

/** Approves as the local operator; of several answers the first counts. */
export const approvalApprove = (context: CommandContext, id: string, options: AnswerOptions) => answerWith('approve', context, id, options);

/** Denies as the local operator; of several answers the first counts. */
export const approvalDeny = (context: CommandContext, id: string, options: AnswerOptions) => answerWith('deny', context, id, options);

async function answerWith(answer: 'approve' | 'deny', context: CommandContext, id: string, { note }: AnswerOptions): Promise<number> {
  const approval = await withOperations(context, (kernel) =>
    kernel.answerApproval({ approval: id, answer, ...(note === undefined ? {} : { note }) }),
  );
  if (context.out.json) context.out.document(approval);
  else context.out.line(`${approval.id} ${approval.state}`);
  return EXIT.good;
}
