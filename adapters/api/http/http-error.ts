import { ApiError, type ErrorBody, errorBody, MembraneError, OutworkError, StoreError, UsageError } from '../../../core/errors.ts';

/** The status of each code that a client may be answered; it matches codes, the status is for what stands between. */
export const STATUS: Readonly<Record<string, number>> = {
  malformed: 400,
  invalid_argument: 400,
  body_too_deep: 400,
  unauthenticated: 401,
  forbidden: 403,
  approval_refused: 403,
  not_found: 404,
  conflict: 409,
  approval_expired: 410,
  body_too_large: 413,
  misdirected: 421,
  text_unstorable: 422,
  rate_limited: 429,
  too_many_streams: 429,
  not_ready: 503,
  policy_not_ready: 503,
  disk_full: 503,
  store_unavailable: 503,
};

export interface HttpError {
  readonly status: number;
  readonly body: ErrorBody;
  /** Nobody's refusal but the kernel's fault: to be logged, the client learns nothing of it. */
  readonly fault: boolean;
}

/** What a client is told of an error. */
export function httpError(thrown: unknown): HttpError {
  const error = asRefusal(thrown);
  if (error instanceof OutworkError) {
    const status = STATUS[error.code];
    if (status !== undefined) return { status, body: errorBody(error), fault: status >= 500 && error.code !== 'not_ready' };
  }
  return { status: 500, body: { error: { code: 'internal', message: 'the kernel could not do this' } }, fault: true };
}

/** Refusals of the HTTP framework and of the body parser in our words; anything else comes back as it was. */
function asRefusal(error: unknown): unknown {
  if (error instanceof MembraneError) {
    if (error.code === 'malformed' || error.code === 'body_too_deep') return new ApiError(error.code, error.message);
    return error;
  }
  if (error instanceof StoreError && error.code === 'illegal_transition') return new UsageError('conflict', error.message);
  if (error instanceof OutworkError || !(error instanceof Error)) return error;
  const { statusCode, validation, validationContext } = error as {
    statusCode?: number;
    validation?: readonly {
      readonly instancePath: string;
      readonly message?: string;
      readonly params?: { readonly additionalProperty?: string; readonly allowedValues?: readonly unknown[] };
    }[];
    validationContext?: string;
  };
  const [fault] = validation ?? [];
  if (fault !== undefined) {
    const { additionalProperty: extra, allowedValues } = fault.params ?? {};
    const problem = allowedValues === undefined ? fault.message : `must be one of ${allowedValues.join(', ')}`;
    const where = `${validationContext ?? 'request'}${fault.instancePath.replaceAll('/', '.')}`;
    return new UsageError('invalid_argument', `${where}: ${extra === undefined ? problem : `unknown field ${extra.slice(0, 80)}`}`);
  }
  if (statusCode === 413) return new ApiError('body_too_large', 'the body is too large');
  if (statusCode === 415) return new ApiError('malformed', 'the body must be application/json');
  if (statusCode !== undefined && statusCode < 500) return new ApiError('malformed', 'the request is not well formed');
  return error;
}
