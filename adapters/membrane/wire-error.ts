import { CallError, type ErrorBody, MembraneError, OutworkError, StoreError } from '../../core/errors.ts';

const MAX_MESSAGE = 500;

/** Statuses of codes, for whoever looks at the wire; guests match codes. A coded refusal that is not listed is a 409. */
const STATUS: Readonly<Record<string, number>> = {
  malformed: 400,
  body_too_deep: 400,
  invalid_arguments: 400,
  unauthenticated: 401,
  denied: 403,
  caller_not_allowed: 403,
  unknown_capability: 404,
  permit_unknown: 404,
  not_found: 404,
  closed: 410,
  body_too_large: 413,
  wire_version: 426,
  text_unstorable: 422,
  output_limit: 422,
  budget_exhausted: 429,
  rate_limited: 429,
  checkpoint_damaged: 500,
  dispatch_failed: 502,
  state_locked: 503,
  disk_full: 503,
  store_unavailable: 503,
};

export interface WireError {
  readonly status: number;
  readonly body: ErrorBody;
}

/** An operation that the protocol does not know. */
export class UnknownOperation extends MembraneError {
  constructor() {
    super('malformed', 'no such operation');
  }
}

/** What a guest is told. Codes of a refused call pass; of anything else it learns only that the kernel failed. */
export function wireError(error: unknown): WireError {
  if (error instanceof UnknownOperation) return coded(404, error);
  if (error instanceof MembraneError || error instanceof CallError || error instanceof StoreError) {
    return coded(STATUS[error.code] ?? 409, error);
  }
  return { status: 500, body: { error: { code: 'internal', message: 'the kernel could not do this' } } };
}

const coded = (status: number, { code, message }: OutworkError): WireError => ({
  status,
  body: { error: { code, message: message.slice(0, MAX_MESSAGE) } },
});

/**
 * Turns what the HTTP framework threw into a refusal of ours; anything that is not a fault of the request comes back as it was.
 * The validator's text names paths and rules, never values.
 */
export function asRefusal(error: unknown): unknown {
  if (error instanceof OutworkError || !(error instanceof Error)) return error;
  const { code, validation } = error as { code?: unknown; validation?: unknown };
  if (validation !== undefined) return new MembraneError('malformed', error.message);
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new MembraneError('body_too_large', 'the body is too large');
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_EMPTY_TYPE':
      return new MembraneError('malformed', 'the body must be application/json');
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_BAD_URL':
      return new MembraneError('malformed', 'the request is not well formed');
    case 'ECONNRESET':
      return new MembraneError('closed', 'the request broke off', { cause: error });
    default:
      return error;
  }
}
