import type { FastifyReply } from 'fastify';
import type { CallReply } from '../../core/capability/types.ts';
import type { StreamLine } from '../../core/wire/protocol.ts';
import { wireError } from './wire-error.ts';

/**
 * Answers a call as a stream: a line for each delta, then one for the reply. An error before the first line is an ordinary refusal, a
 * later one is the last line. A guest that lets more than `maxWaitingBytes` pile up loses the connection; the call itself goes on and
 * its recorded result can be had again under its key.
 */
export async function streamCall(
  reply: FastifyReply,
  maxWaitingBytes: number,
  call: (onDelta: (text: string) => void) => Promise<CallReply>,
): Promise<void> {
  const response = reply.raw;
  const write = (line: StreamLine): void => {
    if (response.destroyed) return;
    if (!response.headersSent) {
      reply.hijack();
      response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
    }
    response.write(`${JSON.stringify(line)}\n`);
    if (response.writableLength > maxWaitingBytes) response.destroy();
  };
  try {
    write({ reply: await call((delta) => write({ delta })) });
  } catch (error) {
    if (!response.headersSent) throw error;
    write({ error: wireError(error).body.error });
  }
  response.end();
}
