import { OutworkError, PrerequisiteError, type PrerequisiteErrorCode, SandboxError } from '../../../core/errors.ts';
import { checkBubblewrap } from './checks.ts';

/** What it is called that the machine fails a check. */
const CODES: Readonly<Record<string, PrerequisiteErrorCode>> = {
  'bubblewrap.sub-ids': 'sub_ids_missing',
  'bubblewrap.user-namespaces': 'user_namespaces_refused',
  'bubblewrap.state-exec': 'state_directory_unusable',
};

/**
 * What a failed start is called. When this machine lacks something, or the image can be neither used nor built, no other start can do better:
 * that becomes the error, a PrerequisiteError with what mends it. Anything else stays what it was and may be tried again.
 */
export async function explainStart(
  error: unknown,
  look: { readonly stateDir: string; readonly image: () => Promise<unknown> },
): Promise<OutworkError> {
  if (error instanceof OutworkError && !(error instanceof SandboxError && STARTING.has(error.code))) return error;
  const lacking = (await checkBubblewrap({ stateDir: look.stateDir }).catch(() => [])).find(({ ok }) => !ok);
  if (lacking !== undefined) {
    const detail = lacking.fix === undefined ? { cause: error } : { cause: error, hint: lacking.fix };
    return new PrerequisiteError(CODES[lacking.id] ?? 'component_missing', `no sandbox can be made: ${lacking.detail}`, detail);
  }
  try {
    await look.image();
  } catch (unusable) {
    if (unusable instanceof PrerequisiteError) return unusable;
  }
  if (error instanceof OutworkError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new SandboxError('start_failed', `the sandbox could not be prepared: ${message}`, { cause: error });
}

const STARTING: ReadonlySet<string> = new Set(['start_failed', 'timeout']);
