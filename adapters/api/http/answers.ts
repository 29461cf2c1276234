import { APPROVAL_STATES } from '../../../core/approval/types.ts';
import { EVENT_TYPES } from '../../../core/events.ts';
import { PLACEMENTS, TRANSITIONS } from '../../../core/run/types.ts';
import { id, NAME, shape } from '../operator-methods.ts';

/** JSON schemas of what the API answers. They are closed: a field that is not here does not leave, and a test holds real answers to them. */

const TIME = { type: 'integer', minimum: 0, description: 'milliseconds since 1970' } as const;
const COUNT = { type: 'integer', minimum: 0 } as const;
const TEXT = { type: 'string' } as const;
const PLACEMENT = { enum: PLACEMENTS } as const;
const ROLE = { enum: ['user', 'approver', 'operator', 'policy'] } as const;
export const STATE = { enum: Object.keys(TRANSITIONS) } as const;
const list = (items: object) => ({ type: 'array', items }) as const;

export const ERROR = shape({ error: shape({ code: TEXT, message: TEXT, hint: TEXT }, ['code', 'message']) }, ['error']);

export const ME = shape({ tenant: NAME, name: NAME, roles: list(ROLE) }, ['tenant', 'name', 'roles']);

const GATE = shape({ kind: { enum: ['approval', 'credential', 'setup', 'unknown', 'resource'] }, ref: TEXT, reason: TEXT }, [
  'kind',
  'ref',
  'reason',
]);

export const RUN = shape(
  {
    id: id('run'),
    tenant: NAME,
    thread: id('thr'),
    actor: NAME,
    origin: { enum: ['interactive', 'trigger', 'operator'] },
    message: id('msg'),
    state: STATE,
    gate: GATE,
    fence: COUNT,
    reclaims: COUNT,
    leaseHolder: TEXT,
    leaseUntilMs: TIME,
    deadlineMs: TIME,
    placement: PLACEMENT,
    harness: NAME,
    cancelRequested: { type: 'boolean' },
    createdAtMs: TIME,
    endedAtMs: TIME,
    failure: TEXT,
  },
  ['id', 'tenant', 'thread', 'actor', 'origin', 'message', 'state', 'fence', 'reclaims', 'cancelRequested', 'createdAtMs'],
);

export const THREAD = shape({ id: id('thr'), tenant: NAME, createdAtMs: TIME }, ['id', 'tenant', 'createdAtMs']);

export const MESSAGE = shape(
  {
    id: id('msg'),
    thread: id('thr'),
    seq: { type: 'integer', minimum: 1 },
    author: { enum: ['user', 'agent'] },
    user: NAME,
    run: id('run'),
    body: TEXT,
    steers: { type: 'boolean' },
    createdAtMs: TIME,
  },
  ['id', 'thread', 'seq', 'author', 'user', 'run', 'body', 'steers', 'createdAtMs'],
);

export const EVENT = shape(
  {
    cursor: { type: 'integer', minimum: 1 },
    atMs: TIME,
    type: { enum: Object.keys(EVENT_TYPES) },
    tenant: NAME,
    thread: id('thr'),
    run: id('run'),
    data: { type: 'object', additionalProperties: true },
  },
  ['cursor', 'atMs', 'type', 'data'],
);

const ATTEMPT = shape(
  {
    run: id('run'),
    fence: COUNT,
    placement: PLACEMENT,
    engine: TEXT,
    sandbox: TEXT,
    holder: TEXT,
    startedAtMs: TIME,
    endedAtMs: TIME,
    outcome: TEXT,
  },
  ['run', 'fence', 'holder', 'startedAtMs'],
);

/** Of calls and decisions the names that people ask for; the rest is for tools and may grow. */
const CALL = {
  type: 'object',
  properties: {
    id: id('cal'),
    run: id('run'),
    fence: COUNT,
    key: shape({ step: COUNT, call: COUNT }, ['step', 'call']),
    capability: TEXT,
    effectClass: { enum: ['pure', 'idempotent', 'once'] },
    state: { enum: ['prepared', 'dispatched', 'done', 'unknown'] },
    summary: TEXT,
    decision: id('dec'),
    permit: id('prm'),
  },
  required: ['id', 'run', 'fence', 'key', 'capability', 'effectClass', 'state', 'summary', 'decision'],
};
const DECISION = {
  type: 'object',
  properties: { id: id('dec'), run: id('run'), capability: TEXT, decision: { type: 'object' }, atMs: TIME },
  required: ['id', 'run', 'capability', 'decision', 'atMs'],
};

export const RUN_VIEW = shape(
  {
    run: RUN,
    attempts: list(ATTEMPT),
    calls: list(CALL),
    decisions: list(DECISION),
    lastEvent: EVENT,
    next: { type: 'string', description: 'what has to happen next, and who does it' },
  },
  ['run', 'attempts', 'calls', 'decisions', 'next'],
);

const REASON = shape({ code: TEXT, message: TEXT }, ['code', 'message']);
const FILE = { argument: COUNT, path: TEXT, sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' }, size: COUNT } as const;

export const APPROVAL = shape(
  {
    id: id('apr'),
    tenant: NAME,
    thread: id('thr'),
    run: id('run'),
    call: id('cal'),
    key: shape({ step: COUNT, call: COUNT }, ['step', 'call']),
    actor: NAME,
    roles: list(ROLE),
    origin: { enum: ['interactive', 'trigger', 'operator'] },
    capability: TEXT,
    effectClass: { enum: ['pure', 'idempotent', 'once'] },
    args: { description: 'projection of the arguments, as policy saw it' },
    fingerprint: { type: 'string', pattern: '^[0-9a-f]{64}$' },
    ceiling: shape(
      {
        startedBy: { enum: ['kernel', 'executor'] },
        leases: list(shape({ recipe: TEXT, operations: list(TEXT) }, ['recipe', 'operations'])),
        hosts: list(TEXT),
        outputBytes: COUNT,
        wallMs: COUNT,
      },
      ['startedBy', 'leases', 'hosts', 'outputBytes', 'wallMs'],
    ),
    digests: shape({ rules: TEXT, data: TEXT }, ['rules', 'data']),
    files: list(shape(FILE, ['argument', 'path', 'sha256', 'size'])),
    shown: shape(
      {
        text: { type: 'string', description: 'plain text; every character of it can be seen' },
        warnings: list(shape({ kind: TEXT, message: TEXT }, ['kind', 'message'])),
      },
      ['text', 'warnings'],
    ),
    reasons: list(REASON),
    decision: id('dec'),
    createdAtMs: TIME,
    expiresAtMs: TIME,
    useWithinMs: COUNT,
    state: { enum: APPROVAL_STATES },
    answeredAtMs: TIME,
    answeredBy: TEXT,
    answerDecision: id('dec'),
    note: TEXT,
    useByMs: TIME,
    endedAtMs: TIME,
  },
  [
    'id',
    'tenant',
    'thread',
    'run',
    'actor',
    'capability',
    'effectClass',
    'fingerprint',
    'ceiling',
    'files',
    'shown',
    'reasons',
    'state',
    'createdAtMs',
    'expiresAtMs',
  ],
);
export const APPROVALS = shape({ approvals: list(APPROVAL) }, ['approvals']);
export const APPROVAL_VIEW = shape(
  {
    approval: APPROVAL,
    files: list(
      shape({ ...FILE, text: { type: 'string', description: 'absent when it is no text' }, cut: { type: 'boolean' } }, [
        'path',
        'sha256',
        'cut',
      ]),
    ),
  },
  ['approval', 'files'],
);

export const POSTED = shape({ thread: THREAD, message: MESSAGE, run: RUN }, ['thread', 'message', 'run']);
const SEAT = {
  ...shape({ placement: PLACEMENT, taken: { type: 'boolean' } }, ['placement', 'taken']),
  description: 'the placement in which the run was seated last; while it never was (`taken` is false), the one that config chooses for it',
};
const LISTED_RUN = shape({ ...RUN.properties, seat: SEAT }, [...RUN.required, 'seat']);
export const RUNS = shape({ runs: list(LISTED_RUN) }, ['runs']);
export const THREADS = shape({ threads: list(THREAD) }, ['threads']);
export const THREAD_VIEW = shape({ thread: THREAD, messages: list(MESSAGE), runs: list(RUN) }, ['thread', 'messages', 'runs']);
export const EVENTS = shape({ events: list(EVENT), next: { type: 'integer', minimum: 0, description: 'the cursor to go on from' } }, [
  'events',
  'next',
]);
export const POLICY = shape(
  { ready: { type: 'boolean' }, digests: shape({ rules: TEXT, data: TEXT }, ['rules', 'data']), loadedAtMs: TIME, reloadFault: TEXT },
  ['ready', 'digests', 'loadedAtMs'],
);
export const ALIVE = shape({ ok: { const: true } }, ['ok']);
export const READY = shape({ ok: { type: 'boolean' }, store: TEXT, policy: TEXT, engine: TEXT, draining: { type: 'boolean' } }, [
  'ok',
  'draining',
]);
