/**
 * One error class per area, each with a closed union of codes. Callers and tests match `code`, never prose.
 * `retryable` says whether the same call may succeed later without a change by the caller.
 */
export abstract class OutworkError<Code extends string = string> extends Error {
  readonly code: Code;
  readonly hint: string | undefined;
  readonly retryable: boolean;

  constructor(code: Code, message: string, options: ErrorDetail = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.hint = options.hint;
    this.retryable = options.retryable ?? false;
  }
}

export interface ErrorDetail {
  readonly cause?: unknown;
  /** What a person can do about it: a command, a key, a path. */
  readonly hint?: string;
  readonly retryable?: boolean;
}

export type ConfigErrorCode =
  | 'config_malformed'
  | 'config_unknown_key'
  | 'config_unreadable'
  /** `profile: production` on a machine where memory or processes of a sandbox cannot be bounded. */
  | 'limits_unenforceable';
/** The configuration cannot be used; nothing was started. Exit code 4. */
export class ConfigError extends OutworkError<ConfigErrorCode> {}

export type PrerequisiteErrorCode =
  | 'component_missing'
  | 'engine_unavailable'
  /** The image of a sandbox is not what its sources make, and cannot be built here. */
  | 'image_unusable'
  /** An installer could not be fetched, or what came is not what was asked for. */
  | 'download_failed'
  | 'digest_mismatch'
  | 'sub_ids_missing'
  | 'user_namespaces_refused'
  | 'state_directory_unusable'
  | 'policy_tool_missing'
  | 'kernel_unreachable'
  /** The kernel of the state directory is there and answers nothing. */
  | 'kernel_unresponsive'
  /** This process may open too few files, or the system has no more. */
  | 'open_files_exhausted'
  | 'address_unavailable';
/** Something this machine must have is not there; `hint` names the command. Exit code 3. */
export class PrerequisiteError extends OutworkError<PrerequisiteErrorCode> {}

export type UsageErrorCode = 'usage' | 'not_found' | 'conflict' | 'invalid_argument';
/** The caller asked for something that cannot be. Exit code 2. */
export class UsageError extends OutworkError<UsageErrorCode> {}

export type StoreErrorCode =
  | 'lease_lost'
  | 'stale_fence'
  | 'not_found'
  | 'conflict'
  | 'state_locked'
  | 'illegal_transition'
  | 'checkpoint_damaged'
  | 'text_unstorable'
  | 'permit_expired'
  | 'approval_expired'
  | 'approval_unusable'
  | 'disk_full'
  /** The database is not one, or parts of it cannot be read. */
  | 'store_damaged'
  /** A newer version of this program has written the database. */
  | 'schema_newer'
  | 'store_unavailable';
/** A durable write was refused; nothing was changed. */
export class StoreError extends OutworkError<StoreErrorCode> {}

export type MembraneErrorCode =
  | 'unauthenticated'
  | 'malformed'
  | 'body_too_large'
  | 'body_too_deep'
  | 'rate_limited'
  | 'wire_version'
  | 'conflict'
  | 'closed';
/** A request of a guest was refused before it became a call. Token failures share one code: no oracle. */
export class MembraneError extends OutworkError<MembraneErrorCode> {}

export type CallErrorCode =
  | 'unknown_capability'
  | 'invalid_arguments'
  | 'caller_not_allowed'
  | 'denied'
  | 'stale_fence'
  | 'nondeterministic'
  | 'effect_unknown'
  /** The broker could not say what credential the call would be given; nothing was executed. */
  | 'credential_unknown'
  | 'in_flight'
  | 'budget_exhausted'
  | 'permit_unknown'
  | 'permit_expired'
  | 'output_limit'
  | 'dispatch_failed';
/** A capability call did not execute, or its end is not known. */
export class CallError extends OutworkError<CallErrorCode> {}

export type PolicyErrorCode =
  | 'policy_not_ready'
  | 'policy_stale'
  | 'policy_build_failed'
  | 'policy_test_failed'
  | 'policy_malformed'
  | 'policy_floor'
  | 'policy_widening'
  | 'policy_unsigned'
  | 'policy_version'
  | 'policy_rolled_back'
  | 'policy_role_required'
  | 'input_out_of_bounds';
/** The policy engine cannot load or use a bundle. A decision never throws: it becomes a deny. */
export class PolicyError extends OutworkError<PolicyErrorCode> {}

export type SandboxErrorCode =
  | 'start_failed'
  | 'guest_lost'
  | 'not_running'
  | 'slice_exhausted'
  | 'path_outside_workspace'
  | 'not_a_regular_file'
  | 'file_not_found'
  | 'file_too_large'
  | 'file_not_permitted'
  | 'disk_full'
  | 'io_failed'
  | 'pids'
  | 'invocations_exhausted'
  | 'background_limit'
  | 'output_limit'
  | 'timeout';
/** A sandbox could not be made, or something inside it could not be done. */
export class SandboxError extends OutworkError<SandboxErrorCode> {}

export type RunErrorCode =
  | 'placement_denied'
  | 'placement_not_reviewed'
  | 'harness_unknown'
  | 'harness_needs_sandbox'
  | 'exit_contradicts_evidence'
  | 'reclaim_budget_exhausted'
  | 'cancelled';
/** A run could not be placed, or its executor broke the protocol. */
export class RunError extends OutworkError<RunErrorCode> {}

export type ApprovalErrorCode = 'approval_refused' | 'approval_expired';
/** A person's answer to an ask was not taken: policy does not let them give it, or it came too late. */
export class ApprovalError extends OutworkError<ApprovalErrorCode> {}

export type ApiErrorCode =
  | 'unauthenticated'
  | 'forbidden'
  | 'malformed'
  | 'body_too_large'
  | 'body_too_deep'
  | 'misdirected'
  | 'rate_limited'
  | 'too_many_streams'
  | 'not_ready';
/** A request to the HTTP API was refused before it reached an operation. Token failures share one code: no oracle. */
export class ApiError extends OutworkError<ApiErrorCode> {}

/** The wire and JSON form of any error. */
export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string };
}

export function errorBody(error: unknown): ErrorBody {
  if (error instanceof OutworkError) {
    const { code, message, hint } = error;
    return { error: hint === undefined ? { code, message } : { code, message, hint } };
  }
  return { error: { code: 'internal', message: error instanceof Error ? error.message : String(error) } };
}
