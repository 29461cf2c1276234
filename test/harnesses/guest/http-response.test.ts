import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResponseReader } from '../../../harnesses/guest/http-response.ts';

interface Seen {
  status: number | undefined;
  body: string;
  ended: boolean | undefined;
}

function reader(): { seen: Seen; response: ResponseReader } {
  const seen: Seen = { status: undefined, body: '', ended: undefined };
  const response = new ResponseReader({
    head: (status) => {
      seen.status = status;
    },
    data: (chunk) => {
      seen.body += chunk.toString('latin1');
    },
    end: (reusable) => {
      seen.ended = reusable;
    },
  });
  return { seen, response };
}

/** Cuts a text at the given places and hands the pieces over one after the other. */
function fed(text: string, cuts: readonly number[]): { seen: Seen; response: ResponseReader } {
  const made = reader();
  const places = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b);
  for (const [i, place] of places.entries()) made.response.push(Buffer.from(text.slice(places[i - 1] ?? 0, place), 'latin1'));
  return made;
}

const chunked = (parts: readonly string[]): string =>
  `${parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`;

const parts = fc.array(fc.string({ minLength: 1, unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) }));

describe('a response on the membrane', () => {
  it('is the same however the connection cuts it, in every framing', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('length', 'chunked', 'close'),
        fc.integer({ min: 200, max: 599 }),
        parts,
        fc.array(fc.nat()),
        (framing, status, bodyParts, cuts) => {
          const body = bodyParts.join('');
          const framed = {
            length: `Content-Length: ${body.length}\r\n\r\n${body}`,
            chunked: `transfer-encoding: Chunked\r\n\r\n${chunked(bodyParts)}`,
            close: `x: y\r\n\r\n${body}`,
          }[framing];
          const { seen, response } = fed(`HTTP/1.1 ${status} Some words\r\n${framed}`, cuts);
          expect(response.close()).toBe(true);
          expect(seen).toEqual({ status, body, ended: framing !== 'close' });
        },
      ),
    );
  });

  it('leaves a connection that the kernel will close to itself', () => {
    expect(fed('HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n', []).seen.ended).toBe(false);
  });

  it('is not whole when the connection ends in it', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(`content-length: 9\r\n\r\n${'x'.repeat(9)}`, `transfer-encoding: chunked\r\n\r\n${chunked(['abc', 'd'])}`),
        fc.nat(),
        (framed, cut) => {
          const text = `HTTP/1.1 200 OK\r\n${framed}`;
          const { seen, response } = fed(text.slice(0, cut % text.length), []);
          expect(response.close()).toBe(false);
          expect(seen.ended).toBeUndefined();
        },
      ),
    );
  });

  it.each([
    ['another protocol', 'SSH-2.0-x\r\n\r\n'],
    ['an older version', 'HTTP/1.0 200 OK\r\n\r\n'],
    ['an interim response', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['two framings', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['a coding it does not know', 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n'],
    ['a length that is none', 'HTTP/1.1 200 OK\r\ncontent-length: 1, 1\r\n\r\n'],
    ['a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n'],
    ['a chunk size that is none', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0x4\r\n'],
    ['a chunk that is longer than it says', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc'],
    ['trailers', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y\r\n\r\n'],
    ['bytes after its end', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab'],
    ['an endless head', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`],
    ['an endless chunk size', `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${'0'.repeat(50)}`],
  ])('refuses %s', (_, text) => {
    expect(() => fed(text, [])).toThrow(/response|chunk/);
  });
});
