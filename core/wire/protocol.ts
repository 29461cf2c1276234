import type { CallReply, CallRequest, CommandOutcome } from '../capability/types.ts';
import type { Json } from '../json.ts';
import type { BackgroundOperation, BackgroundResult, CommandProgress, FileOperation, FileResult, ToolCommand } from '../ports/placement.ts';
import type { ExitClaim, Message } from '../run/types.ts';

/** Version of the membrane's wire. The kernel speaks this one and (from version 2 on) the one before. */
export const WIRE_VERSION = 1;

/**
 * Operations of the membrane: HTTP/1.1 and JSON over the sandbox's own unix socket, `POST /v1/<operation>` with a bearer token.
 * `control` is a GET whose response is a stream of newline-delimited `ControlMessage`s; it admits one connection at a time.
 */
export const OPERATIONS = {
  hello: { path: '/v1/hello', token: 'sandbox' },
  control: { path: '/v1/control', token: 'sandbox' },
  'control.reply': { path: '/v1/control.reply', token: 'sandbox' },
  'context.get': { path: '/v1/context.get', token: 'run' },
  call: { path: '/v1/call', token: 'run' },
  'call.stream': { path: '/v1/call.stream', token: 'run' },
  'permit.close': { path: '/v1/permit.close', token: 'run' },
  'progress.emit': { path: '/v1/progress.emit', token: 'run' },
  'steer.next': { path: '/v1/steer.next', token: 'run' },
  'checkpoint.get': { path: '/v1/checkpoint.get', token: 'run' },
  exit: { path: '/v1/exit', token: 'run' },
} as const;
export type OperationName = keyof typeof OPERATIONS;

export interface HelloRequest {
  readonly wire: number;
  /** sha256 of the guest bundle, as the guest sees it. A claim; the kernel compares it with its own. */
  readonly guest: string;
}
export interface HelloReply {
  readonly wire: number;
  readonly sandbox: string;
}

/** Kernel → guest. */
export type ControlMessage =
  | { readonly type: 'run'; readonly run: string; readonly token: string; readonly harness: string; readonly deadlineMs: number }
  | { readonly type: 'cancel'; readonly run: string }
  /** Ends every non-background process of the run and forgets it. */
  | { readonly type: 'forget'; readonly run: string }
  | { readonly type: 'exec'; readonly id: string; readonly run: string; readonly command: ToolCommand }
  | { readonly type: 'exec.cancel'; readonly id: string }
  | { readonly type: 'file'; readonly id: string; readonly operation: FileOperation }
  | { readonly type: 'background'; readonly id: string; readonly operation: BackgroundOperation }
  | { readonly type: 'ping' };

/** Guest → kernel, for `exec`, `file` and `background`. `progress` of an `exec` may come any number of times before its reply. */
export interface ControlReply {
  readonly id: string;
  readonly exec?: CommandOutcome;
  readonly file?: FileResult;
  readonly background?: BackgroundResult;
  readonly progress?: CommandProgress;
  readonly error?: { readonly code: string; readonly message: string };
}

export interface RunContext {
  readonly run: string;
  readonly thread: string;
  readonly harness: string;
  /** Bounded, prepared by the kernel; the last one from a user is the message of this run. */
  readonly messages: readonly Pick<Message, 'seq' | 'author' | 'user' | 'body'>[];
  readonly local: boolean;
}

export interface CheckpointBody {
  readonly schema: string;
  readonly version: number;
  readonly body: string;
}

export interface PermitClose {
  readonly permit: string;
  readonly outcome?: CommandOutcome;
  readonly error?: { readonly code: string; readonly message: string };
}

/** Body of `progress.emit`. Bodies of operations that carry nothing are `{}`, both ways. */
export interface ProgressRequest {
  readonly data: Json;
}

/** Body of `steer.next`. */
export interface SteerRequest {
  readonly afterSeq: number;
}

/** Reply of `checkpoint.get`; null when the run has none. */
export interface CheckpointReply {
  readonly checkpoint: CheckpointBody | null;
}

/** One line of a `call.stream` response: any number of deltas, then one reply or one error. */
export type StreamLine =
  | { readonly delta: string }
  | { readonly reply: CallReply }
  | { readonly error: { readonly code: string; readonly message: string } };

export interface SteerReply {
  readonly messages: readonly { readonly seq: number; readonly body: string }[];
  readonly cancelled: boolean;
}

/**
 * What a harness programs against; the same bytes run in every placement. In the kernel process it is bound straight to the operations,
 * in a sandbox to HTTP over the membrane socket.
 */
export interface MembraneClient {
  context(): Promise<RunContext>;
  checkpoint(): Promise<CheckpointBody | undefined>;
  /** A command that comes back as a permit has been run and closed by the time this resolves: harnesses see results only. */
  call(request: CallRequest): Promise<Exclude<CallReply, { effect: 'permit' }>>;
  /** As `call`, for `model.generate`; `onDelta` sees text as it arrives. */
  callStream(request: CallRequest, onDelta: (text: string) => void): Promise<Exclude<CallReply, { effect: 'permit' }>>;
  progress(data: Json): Promise<void>;
  steer(afterSeq: number): Promise<SteerReply>;
}

/** A harness that is our own guest code: runs one run to its next stop. */
export type Harness = (client: MembraneClient, signal: AbortSignal) => Promise<ExitClaim>;
