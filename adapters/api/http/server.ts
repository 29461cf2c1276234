import type { IncomingMessage } from 'node:http';
import swagger from '@fastify/swagger';
import { Ajv } from 'ajv';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifySchema } from 'fastify';
import type { CompiledConfig } from '../../../core/config.ts';
import { ApiError, PrerequisiteError, UsageError } from '../../../core/errors.ts';
import { newId } from '../../../core/ids.ts';
import type { ApiCaller, KernelOperations, Servable } from '../../../core/kernel.ts';
import { SAFETY } from '../../../core/limits.ts';
import type { Clock } from '../../../core/seams/clock.ts';
import type { Logger } from '../../../core/seams/logger.ts';
import { parseJsonBody } from '../../membrane/json-body.ts';
import { id } from '../operator-methods.ts';
import { Admission, RateLimited } from './admission.ts';
import { ERROR } from './answers.ts';
import { streamEvents } from './event-stream.ts';
import { httpError } from './http-error.ts';
import { isOurHost, type ListenAddress, listenAddress } from './listen-address.ts';
import { visibleEvents, visibleRun } from './ownership.ts';
import { PARAMS, ROUTES, type Route, type RouteCall, type RouteName } from './routes.ts';

/** What `/metrics` shows and who is told of requests. */
export interface ApiMetrics {
  readonly contentType: string;
  text(): Promise<string>;
  onRequest(route: string, status: number): void;
  onStreams(open: number): void;
}

export interface ApiOptions {
  readonly kernel: KernelOperations & Servable;
  readonly config: Pick<CompiledConfig, 'api'>;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ApiMetrics;
}

export interface ApiServer extends AsyncDisposable {
  /** `http://address:port`, the port as it really is. */
  readonly url: string;
  /** From now on `/readyz` says no: whoever sends requests here should stop. Everything still works. */
  drain(): void;
  /** Ends streams, closes the listener and every connection. */
  close(): Promise<void>;
}

/** Serves the API. @throws ConfigError (address), PrerequisiteError when the address cannot be had */
export async function serveApi(options: ApiOptions): Promise<ApiServer> {
  const address = listenAddress(options.config.api);
  const state = { draining: false, closing: new AbortController() };
  const app = await createApi(options, address, state);
  const url = await app.listen({ host: address.host, port: address.port }).catch(async (cause: NodeJS.ErrnoException) => {
    await app.close();
    throw new PrerequisiteError('address_unavailable', `${options.config.api.listen} cannot be listened on (${cause.code})`, {
      cause,
      hint: 'choose another with --listen ADDRESS:PORT',
    });
  });
  if (!address.loopback)
    options.log.warn(
      { address: address.host, reason: options.config.api.nonLoopback },
      'listening beyond loopback: tokens cross a network',
    );
  const close = async () => {
    state.draining = true;
    state.closing.abort();
    await app.close();
  };
  return {
    url,
    drain: () => {
      state.draining = true;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface ApiState {
  draining: boolean;
  readonly closing: AbortController;
}

/** @internal The application without a listener. */
export async function createApi(options: ApiOptions, address: ListenAddress, state: ApiState): Promise<FastifyInstance> {
  const { kernel, config, clock, log, metrics } = options;
  const callers = new WeakMap<IncomingMessage, ApiCaller>();
  const admission = new Admission({ kernel, clock });
  const refuse = (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const { status, body, fault } = httpError(thrown);
    if (fault) log.error({ request: request.id, err: thrown }, 'a request failed');
    if (status === 401) reply.header('www-authenticate', 'Bearer');
    if (thrown instanceof RateLimited) reply.header('retry-after', String(thrown.retryAfterS));
    // A body that was not read to its end may be as long as it likes.
    if (!request.raw.complete) reply.header('connection', 'close');
    reply.code(status).send(body);
  };
  const app = Fastify({
    bodyLimit: SAFETY.apiBodyBytes,
    exposeHeadRoutes: false,
    requestTimeout: 15_000,
    keepAliveTimeout: 60_000,
    forceCloseConnections: true,
    http: { maxHeaderSize: SAFETY.apiHeaderBytes },
    requestIdHeader: false,
    genReqId: () => newId('request', clock.now()),
    frameworkErrors: refuse,
    clientErrorHandler: (_error, socket) => {
      if (socket.writable)
        socket.end(`HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n${UNREADABLE}`);
      socket.destroySoon?.();
    },
  });
  app.server.maxConnections = SAFETY.apiConnections;
  app.setErrorHandler(refuse);
  app.setNotFoundHandler((request, reply) => refuse(new UsageError('not_found', 'no such route'), request, reply));
  setParts(app);
  await app.register(swagger, { openapi: describe(options.version), hideUntagged: false, stripBasePath: false });

  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ ...HEADERS, 'x-request-id': request.id });
    if (!isOurHost(request.headers.host, address, config.api.hosts)) throw new ApiError('misdirected', 'this server has not that name');
    const name = routeOf(request);
    const roles = name === undefined || (name === 'metrics' && config.api.metrics === 'open') ? 'anyone' : ROUTES[name].roles;
    const caller = await admission.admit(request.headers.authorization, roles);
    if (caller !== undefined) callers.set(request.raw, caller);
  });
  app.addHook('onResponse', async (request, reply) => {
    const name = routeOf(request);
    metrics.onRequest(name ?? 'none', reply.statusCode);
    const user = callers.get(request.raw)?.user;
    const fields = { request: request.id, route: name, status: reply.statusCode, tenant: user?.tenant, user: user?.name };
    log[request.method === 'GET' && reply.statusCode < 500 ? 'debug' : 'info'](fields, 'request');
  });
  const callerOf = (request: FastifyRequest): ApiCaller => {
    const caller = callers.get(request.raw);
    if (caller === undefined) throw new TypeError('a route that needs a caller was reached by none');
    return caller;
  };

  for (const [name, route] of Object.entries(ROUTES) as [RouteName, Route][]) {
    const { handle } = route;
    const own: Partial<Record<RouteName, (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>>> = {
      health: async () => ({ ok: true }),
      async ready(_request, reply) {
        const { store, policy, engine } = await kernel.readiness();
        const ok = !state.draining && store === undefined && policy === undefined && engine === undefined;
        return reply.code(ok ? 200 : 503).send({ ok, store, policy, engine, draining: state.draining });
      },
      async metrics(_request, reply) {
        return reply.type(metrics.contentType).send(await metrics.text());
      },
      description: async () => app.swagger(),
      stream: (request, reply) => stream(request, reply, callerOf(request)),
    };
    app.route({
      method: route.method,
      url: route.path,
      config: { name },
      schema: schemaOf(name, route),
      handler: async (request, reply) => {
        if (handle === undefined) return own[name]?.(request, reply);
        const { params, query, body } = request as Pick<RouteCall, 'params' | 'query' | 'body'>;
        const answer = await handle({ kernel, caller: callerOf(request), params, query, body });
        return reply.code(route.status).send(answer);
      },
    });
  }

  async function stream(request: FastifyRequest, reply: FastifyReply, caller: ApiCaller): Promise<void> {
    const { query } = request as Pick<RouteCall, 'query'>;
    const run = query.run === undefined ? undefined : (await visibleRun(kernel, caller, query.run)).id;
    const from = resumeFrom(request.headers['last-event-id']) ?? query.from ?? (await kernel.eventsHead());
    const leaveNow = admission.enterStream(caller);
    const leave = () => {
      leaveNow();
      metrics.onStreams(admission.streams);
    };
    // A reader that goes makes room at once, not when the next event is due.
    reply.raw.once('close', leave);
    try {
      metrics.onStreams(admission.streams);
      reply.hijack();
      reply.raw.writeHead(200, { ...HEADERS, 'x-request-id': request.id, 'content-type': 'text/event-stream' });
      const sees = visibleEvents(kernel, caller);
      await streamEvents(reply.raw, {
        ...{ kernel, clock, from, signal: state.closing.signal },
        wanted: run === undefined ? sees : async (event) => event.run === run,
        allowed: () => admission.stillGood(request.headers.authorization),
      });
    } catch (error) {
      // The headers are gone: all that is left is to end it.
      if (!state.closing.signal.aborted) log.error({ request: request.id, err: error }, 'an event stream failed');
      reply.raw.destroy();
    } finally {
      leave();
    }
  }
  await app.ready();
  return app;
}

/** On every answer. No CORS header: a page of another origin gets nothing. */
const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const;

const UNREADABLE = '{"error":{"code":"malformed","message":"the request is not well formed or came too slowly"}}';

const routeOf = (request: FastifyRequest): RouteName | undefined => (request.routeOptions.config as { name?: RouteName } | undefined)?.name;

/** The cursor of a reader that comes back; what is no cursor is no reader of ours. @throws UsageError `invalid_argument` */
function resumeFrom(header: string | string[] | undefined): number | undefined {
  if (header === undefined || header === '') return undefined;
  const cursor = typeof header === 'string' && /^\d{1,16}$/.test(header) ? Number(header) : Number.NaN;
  if (!Number.isSafeInteger(cursor)) throw new UsageError('invalid_argument', 'headers.last-event-id: must be a cursor');
  return cursor;
}

/** Parsing, checking and writing, all strict: nothing is repaired, dropped or filled in; a number in a query is the one thing converted. */
function setParts(app: FastifyInstance): void {
  const strict = new Ajv({ strict: false, allErrors: false });
  const text = new Ajv({ strict: false, allErrors: false, coerceTypes: true });
  app.setValidatorCompiler(({ schema, httpPart }) => (httpPart === 'querystring' ? text : strict).compile(schema as object));
  app.setSerializerCompiler(() => JSON.stringify);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) =>
    parseJsonBody(body, SAFETY.apiDepth),
  );
}

/** The route's schemas as the framework and the description take them. */
function schemaOf(name: RouteName, route: Route): FastifySchema {
  const { summary, roles, query, body, status, answer } = route;
  const params = [...route.path.matchAll(/:(\w+)/g)].map(([, part = '']) => part);
  const ok =
    'mediaType' in answer
      ? { description: answer.description, content: { [answer.mediaType]: { schema: { type: 'string' } } } }
      : { description: summary, ...answer };
  const refusals = ['4xx', ...(name === 'ready' ? [] : ['5xx'])].map((code) => [
    code,
    { description: 'Refused; the code says why', ...ERROR },
  ]);
  const extra = name === 'ready' ? { 503: { description: 'Not now, and why', ...answer } } : {};
  return {
    operationId: name,
    summary,
    ...(roles === 'anyone' ? { security: [] } : { security: [{ bearer: [] }], 'x-roles': roles }),
    ...(params.length === 0
      ? {}
      : {
          params: {
            type: 'object',
            properties: Object.fromEntries(params.map((part) => [part, PARAMS[part] ?? id(part)])),
            required: params,
          },
        }),
    querystring: query ?? { type: 'object', additionalProperties: false, properties: {} },
    ...(route.method === 'POST' ? { body: body ?? { type: ['object', 'null'], additionalProperties: false } } : {}),
    response: { [status]: ok, ...extra, ...Object.fromEntries(refusals) },
  } as FastifySchema;
}

const describe = (version: string) =>
  ({
    openapi: '3.1.0',
    info: { title: 'Outwork', version, description: 'Tenant, user and actor come from the bearer token and from nothing else.' },
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  }) as const;
