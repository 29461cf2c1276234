import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import swagger from '@fastify/swagger';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { CallError, MembraneError } from '../../core/errors.ts';
import type { Clock } from '../../core/seams/clock.ts';
import type { RunTokens } from '../../core/seams/run-tokens.ts';
import { OPERATIONS, WIRE_VERSION } from '../../core/wire/protocol.ts';
import type { MembraneService } from '../../core/wire/service.ts';
import { Admission } from './admission.ts';
import type { Membrane, SandboxChannel } from './channel.ts';
import { GuestChannel } from './guest-channel.ts';
import { parseJsonBody } from './json-body.ts';
import { MEMBRANE_LIMITS, type MembraneLimits } from './limits.ts';
import { openListener } from './listener.ts';
import { registerOperations } from './operations.ts';
import { refusalReporter } from './refusals.ts';
import type { Seat } from './seat.ts';
import { asRefusal, UnknownOperation, wireError } from './wire-error.ts';

export interface MembraneOptions {
  readonly service: MembraneService;
  readonly tokens: RunTokens;
  readonly clock: Clock;
  /** sha256 of the guest this kernel brings; a guest that says another is refused. */
  readonly guestDigest: () => string;
  readonly limits?: Partial<MembraneLimits>;
  /** Sees errors that are nobody's refusal: faults of the kernel, which a guest learns nothing of. */
  readonly onFault?: (error: unknown) => void;
}

/** One application for all sandboxes, and for each sandbox a listening socket of its own, which says whose requests arrive there. */
export async function createMembrane(options: MembraneOptions): Promise<Membrane> {
  const { service, tokens, clock, guestDigest, onFault = () => undefined } = options;
  const limits: MembraneLimits = { ...MEMBRANE_LIMITS, ...options.limits };
  const seats = new WeakMap<IncomingMessage, Seat>();
  const channels = new Set<SandboxChannel>();
  const app = await createApp({ service, tokens, limits, seats, onFault });

  return {
    async open({ tenant, user, generation, socketDir }) {
      const owner = { tenant, user, sandbox: generation };
      const socketPath = join(socketDir, 'membrane.sock');
      const channel = new GuestChannel({ socketPath, generation, guestDigest, clock, limits });
      const admission = new Admission({ clock, perSecond: limits.requestsPerSecond, burst: limits.burst });
      const seat: Seat = { owner, admission, channel, refused: refusalReporter({ service, clock, sandbox: owner }) };
      const listener = await openListener({
        socketPath,
        limits,
        admission,
        refused: seat.refused,
        handle: (request, response) => {
          seats.set(request, seat);
          app.routing(request, response);
        },
      });
      channels.add(channel);
      channel.attach(listener, () => {
        channels.delete(channel);
        tokens.revoke({ sandbox: generation });
      });
      return channel;
    },
    openApi: () => app.swagger(),
    async close() {
      await Promise.all([...channels].map((channel) => channel.close()));
      await app.close();
    },
  };
}

interface AppDeps extends Required<Pick<MembraneOptions, 'service' | 'tokens' | 'onFault'>> {
  readonly limits: MembraneLimits;
  readonly seats: WeakMap<IncomingMessage, Seat>;
}

async function createApp({ service, tokens, limits, seats, onFault }: AppDeps): Promise<FastifyInstance> {
  const seatOf = (request: FastifyRequest): Seat => {
    const seat = seats.get(request.raw);
    if (seat === undefined) throw new TypeError('a request came in by no sandbox socket');
    return seat;
  };
  const refuse = (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const error = asRefusal(thrown);
    const { status, body } = wireError(error);
    if (isRefusal(error)) seatOf(request).refused(operationOf(request), body.error.code);
    else if (body.error.code === 'internal') onFault(error);
    // A body that was not read to its end may be as long as it likes.
    if (!request.raw.complete) reply.header('connection', 'close');
    reply.code(status).send(body);
  };

  const app = Fastify({
    bodyLimit: limits.bodyBytes,
    exposeHeadRoutes: false,
    // Strict: Fastify's defaults would change types, drop unknown fields and fill in defaults, and then call it valid.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: false } },
    frameworkErrors: refuse,
  });
  app.setErrorHandler(refuse);
  app.setNotFoundHandler((request, reply) => refuse(new UnknownOperation(), request, reply));
  // Replies are the kernel's own; a serializer made from the schema would silently drop what the schema lacks.
  app.setSerializerCompiler(() => JSON.stringify);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    if (request.headers['content-length'] === undefined) {
      seatOf(request).admission.charge(Math.floor(body.length / limits.bytesPerRequest));
    }
    return parseJsonBody(body, limits.depth);
  });
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Outwork membrane', version: String(WIRE_VERSION) },
      components: {
        securitySchemes: {
          sandbox: { type: 'http', scheme: 'bearer', description: "The sandbox's token, handed to its guest on descriptor 3" },
          run: { type: 'http', scheme: 'bearer', description: "A run's token, handed to its guest on the control stream" },
        },
      },
    },
  });
  registerOperations(app, { service, tokens, limits, seatOf });
  await app.ready();
  return app;
}

/** Refused by the membrane itself. What the service refuses, it has recorded; a request that broke off was refused by nobody. */
const isRefusal = (error: unknown): boolean =>
  error instanceof MembraneError ? error.cause === undefined : error instanceof CallError && error.code === 'stale_fence';

/** Never the URL itself: the guest chose that, and the name goes into the event log. */
const operationOf = (request: FastifyRequest): string =>
  Object.entries(OPERATIONS).find(([, { path }]) => path === request.routeOptions.url)?.[0] ?? 'unknown';
