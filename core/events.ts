import type { Json } from './json.ts';

/** Every kind of event, past tense; data holds ids, codes and digests, never a secret and never raw output. */
export const EVENT_TYPES = {
  'user.added': 'a user was made',
  'user.token_issued': 'a bearer token was issued',
  'user.tokens_revoked': 'the bearer tokens of a user stopped counting',
  'user.disabled': 'a user may not act any more; tokens are refused',
  'user.enabled': 'a disabled user may act again',
  'message.posted': 'a message was appended to a thread',
  'run.queued': 'a run waits for a claim',
  'run.claimed': 'an attempt took the lease',
  'run.placed': 'the attempt has a seat',
  'run.reclaimed': 'an attempt was lost; the run goes back to the queue',
  'run.parked': 'the run waits at a gate',
  'run.woken': 'the gate opened',
  'run.completed': 'the run ended well',
  'run.failed': 'the run ended badly; the code says why',
  'run.cancelling': 'cancellation was asked for',
  'run.cancelled': 'the run was cancelled',
  'run.steered': 'a steering message was added',
  'run.progress': 'the executor reported progress',
  'call.dispatched': 'a call was allowed and handed over',
  'call.completed': 'a call ended',
  'call.denied': 'policy or floor refused a call; nothing was executed',
  'call.unknown': 'the end of a call is not known',
  'call.resolved': 'a person ended an unknown call',
  'credential.missing': 'a call waits for a credential that its owner has not provided',
  'approval.requested': 'a call waits for a person to approve it',
  'approval.approved': 'a person approved a call; it may be carried out once',
  'approval.denied': 'a person denied a call',
  'approval.expired': 'an ask was not answered, or an approval not used, in time',
  'approval.consumed': 'an approved call was handed over; the approval is used up',
  'approval.withdrawn': 'an ask or an approval no longer counts: its call changed or ended, or its run did',
  'call.refused': 'a call was refused before policy: malformed, unknown, stale',
  'membrane.refused': 'a request of a sandbox was refused before it became a call',
  'sandbox.started': 'a sandbox was made',
  'sandbox.stopped': 'a sandbox ended',
  'sandbox.recycled': 'a sandbox was thrown away for a new one',
  'delivery.sent': 'a reply reached its channel',
  'delivery.failed': 'a reply surely did not reach its channel; it will be tried again',
  'delivery.unknown': 'whether a reply reached its channel is not known',
  'store.pruned': 'rows that are kept no longer were removed; how many of each kind',
  'policy.loaded': 'rules or data were loaded',
  'policy.first_loaded': 'rules or data that are not the shipped ones were the first of a state directory; looser answers are named',
  'policy.widened': 'a person let rules or data that allow more take effect',
  'policy.rolled_back': 'a person made earlier rules and data take effect again',
  'policy.reload_failed': 'rules or data were refused; the last good ones stay',
  'policy.restored': 'rules and data on disk, refused before, are again those that run',
} as const;

export type EventType = keyof typeof EVENT_TYPES;

/** Events of no thread that are kept as long as those of a closed one. The others without a thread say who was given what, and stay. */
export const PASSING_EVENTS: readonly EventType[] = [
  'membrane.refused',
  'sandbox.recycled',
  'sandbox.started',
  'sandbox.stopped',
  'store.pruned',
];

export interface NewEvent {
  readonly type: EventType;
  readonly tenant?: string;
  readonly thread?: string;
  readonly run?: string;
  readonly data: { readonly [key: string]: Json };
}

export interface KernelEvent extends NewEvent {
  /** Position in the log, from 1, without gaps. */
  readonly cursor: number;
  readonly atMs: number;
}
