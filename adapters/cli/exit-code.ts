import {
  ApprovalError,
  ConfigError,
  OutworkError,
  PolicyError,
  PrerequisiteError,
  type PrerequisiteErrorCode,
  RunError,
  StoreError,
  UsageError,
} from '../../core/errors.ts';
import type { Run } from '../../core/run/types.ts';

/** Exit codes of every command; scripts may rely on them. */
export const EXIT = {
  good: 0,
  /** Done, and not good: a turn failed, a check found something, an attack got through. */
  bad: 1,
  usage: 2,
  /** Something this machine must have is missing; the error names it. */
  missing: 3,
  /** Policy, configuration or review refused. */
  refused: 4,
  /** A run waits at a gate; its kind and id are on the last line. */
  parked: 5,
  interrupted: 130,
} as const;

/** Failures of a run that say what this machine lacks. A record, so that no code can be left out. */
const MISSING: Readonly<Record<PrerequisiteErrorCode, true>> = {
  component_missing: true,
  engine_unavailable: true,
  image_unusable: true,
  download_failed: true,
  digest_mismatch: true,
  sub_ids_missing: true,
  user_namespaces_refused: true,
  state_directory_unusable: true,
  policy_tool_missing: true,
  kernel_unreachable: true,
  kernel_unresponsive: true,
  open_files_exhausted: true,
  address_unavailable: true,
};
const REFUSALS: ReadonlySet<string> = new Set(['placement_denied', 'placement_not_reviewed']);
/** A state directory that can be used is something this machine must have. */
const MISSING_OF_STORE: ReadonlySet<string> = new Set(['state_locked', 'store_damaged', 'schema_newer']);
const USAGE_OF_STORE: ReadonlySet<string> = new Set(['not_found', 'conflict', 'illegal_transition', 'text_unstorable']);

/** The exit code of a command that ended with this error. */
export function exitCodeOf(error: unknown): number {
  if (!(error instanceof OutworkError)) return EXIT.bad;
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof PrerequisiteError) return EXIT.missing;
  if (error instanceof ConfigError || error instanceof PolicyError) return EXIT.refused;
  if (error instanceof ApprovalError) return error.code === 'approval_refused' ? EXIT.refused : EXIT.usage;
  if (error instanceof StoreError) {
    if (MISSING_OF_STORE.has(error.code)) return EXIT.missing;
    return USAGE_OF_STORE.has(error.code) ? EXIT.usage : EXIT.bad;
  }
  return error instanceof RunError && REFUSALS.has(error.code) ? EXIT.refused : EXIT.bad;
}

/** The exit code of a command that followed a run to where it stopped. */
export function exitCodeOfRun(run: Run): number {
  if (run.state === 'completed') return EXIT.good;
  if (run.state === 'parked') return EXIT.parked;
  if (run.failure === undefined) return EXIT.bad;
  if (Object.hasOwn(MISSING, run.failure)) return EXIT.missing;
  return REFUSALS.has(run.failure) ? EXIT.refused : EXIT.bad;
}
