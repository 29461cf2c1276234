import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { CallRequest, CallScope } from '../../core/capability/types.ts';
import type { ExitClaim } from '../../core/run/types.ts';
import type { RunTokens, TokenClaims } from '../../core/seams/run-tokens.ts';
import {
  type ControlReply,
  type HelloRequest,
  OPERATIONS,
  type OperationName,
  type PermitClose,
  type ProgressRequest,
  type SteerRequest,
} from '../../core/wire/protocol.ts';
import { errorReplySchema, OPERATION_SCHEMAS } from '../../core/wire/schemas.ts';
import type { MembraneService } from '../../core/wire/service.ts';
import { authenticate, scopeOf } from './authenticate.ts';
import { streamCall } from './call-stream.ts';
import type { MembraneLimits } from './limits.ts';
import type { Seat } from './seat.ts';
import { requireStorableText } from './storable-text.ts';

export interface OperationDeps {
  readonly service: MembraneService;
  readonly tokens: RunTokens;
  readonly limits: MembraneLimits;
  readonly seatOf: (request: FastifyRequest) => Seat;
}

const CLAIMS = 'claims';

/** Operations that carry files, outputs or checkpoints. */
const BULKY: ReadonlySet<OperationName> = new Set(['call', 'call.stream', 'permit.close', 'control.reply']);

/**
 * Registers every operation of the protocol. For each request the token and the fence are judged before the body is read, and the fence
 * once more when the body is there, because a body may take its time.
 */
export function registerOperations(app: FastifyInstance, deps: OperationDeps): void {
  const { service, tokens, limits, seatOf } = deps;
  app.decorateRequest(CLAIMS);

  const guard = (operation: OperationName) => async (request: FastifyRequest, reply: FastifyReply) => {
    const seat = seatOf(request);
    const claims = await authenticate(request.raw, { operation, seat, tokens, failedTokenCost: limits.failedTokenCost });
    if (claims.kind === 'run') scopeOf(service, claims);
    request.setDecorator<TokenClaims>(CLAIMS, claims);
    if (request.headers.expect !== undefined) reply.raw.writeContinue();
  };

  const scope = (request: FastifyRequest): CallScope => {
    const claims = request.getDecorator<TokenClaims>(CLAIMS);
    if (claims.kind !== 'run') throw new TypeError('a run operation was registered for another token');
    return scopeOf(service, claims);
  };

  const post = <Body>(
    operation: Exclude<OperationName, 'control'>,
    handle: (request: FastifyRequest, body: Body, reply: FastifyReply) => unknown,
  ): void => {
    app.route({
      method: 'POST',
      url: OPERATIONS[operation].path,
      schema: routeSchema(operation),
      onRequest: guard(operation),
      ...(BULKY.has(operation) ? {} : { bodyLimit: Math.min(limits.smallBodyBytes, limits.bodyBytes) }),
      // The schema has held the body to `Body`.
      handler: async (request, reply) => handle(request, request.body as Body, reply),
    });
  };

  post<HelloRequest>('hello', (request, body) => seatOf(request).channel.hello(body));
  app.route({
    method: 'GET',
    url: OPERATIONS.control.path,
    schema: routeSchema('control'),
    onRequest: guard('control'),
    handler: async (request, reply) => {
      const { channel } = seatOf(request);
      channel.admitControl();
      reply.hijack();
      channel.openControl(reply.raw);
    },
  });
  post<ControlReply>('control.reply', (request, body) => {
    seatOf(request).channel.reply(body);
    return {};
  });

  post('context.get', (request) => service.context(scope(request)));
  post<CallRequest>('call', (request, body) => service.call(scope(request), body));
  post<CallRequest>('call.stream', (request, body, reply) => {
    const live = scope(request);
    return streamCall(reply, limits.streamBytes, (onDelta) => service.call(live, body, onDelta));
  });
  post<PermitClose>('permit.close', (request, body) => service.closePermit(scope(request), body));
  post<ProgressRequest>('progress.emit', async (request, body) => {
    requireStorableText(body.data);
    await service.progress(scope(request), body.data);
    return {};
  });
  post<SteerRequest>('steer.next', (request, body) => service.steer(scope(request), body.afterSeq));
  post('checkpoint.get', async (request) => ({ checkpoint: (await service.checkpoint(scope(request))) ?? null }));
  post<ExitClaim>('exit', async (request, body) => {
    requireStorableText(body);
    await service.exit(scope(request), body);
    return {};
  });
}

function routeSchema(operation: OperationName): object {
  const { request, reply, streams } = OPERATION_SCHEMAS[operation];
  return {
    operationId: operation,
    security: [{ [OPERATIONS[operation].token]: [] }],
    ...(request === undefined ? {} : { body: request }),
    response: {
      200: { description: 'Done', content: { [streams ? 'application/x-ndjson' : 'application/json']: { schema: reply } } },
      '4xx': { description: 'Refused; nothing was executed', content: { 'application/json': { schema: errorReplySchema } } },
      '5xx': { description: 'The kernel could not do it', content: { 'application/json': { schema: errorReplySchema } } },
    },
  };
}
