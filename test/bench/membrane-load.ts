import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';

/** A process of its own that puts load on a socket: what `membrane.ts` starts, told by one JSON argument what to do. */
export type Load = Calls | Flood;
export type FloodKind = Flood['kind'];

interface Calls {
  readonly kind: 'calls';
  readonly socketPath: string;
  readonly path: string;
  readonly token: string;
  readonly count: number;
  /** Calls made first and not measured. */
  readonly warmUp: number;
}

interface Flood {
  /** `bad-tokens`: as fast as they are answered, on every connection. `reconnects`: nothing but connections, opened again when closed. */
  readonly kind: 'bad-tokens' | 'reconnects';
  readonly socketPath: string;
  readonly path: string;
  readonly token: string;
  readonly connections: number;
}

const BODY = JSON.stringify({ key: { step: 1, call: 2 }, capability: 'shell.exec', args: { argv: ['git', 'log'], text: 'x'.repeat(800) } });

const load = JSON.parse(process.argv[2] ?? '') as Load;
// The parent's end of standard input is the sign to leave.
process.stdin.on('end', () => process.exit(0)).resume();
if (load.kind === 'calls') {
  const times = await measureCalls(load);
  process.stdout.write(JSON.stringify(times), () => process.exit(0));
} else flood(load);

/** @returns microseconds of each call, one after the other on one connection */
async function measureCalls({ socketPath, path, token, count, warmUp }: Calls): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  for (let i = 0; i < warmUp + count; i += 1) {
    const startNs = process.hrtime.bigint();
    const sent = request({
      socketPath,
      path,
      agent,
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': BODY.length },
    });
    sent.end(BODY);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    if (response.statusCode !== 200) throw new Error(`answered ${response.statusCode}`);
    if (i >= warmUp) times.push(Number(process.hrtime.bigint() - startNs) / 1000);
  }
  return times;
}

function flood({ kind, socketPath, path, token, connections }: Flood): void {
  const bytes = `POST ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;
  const open = (): void => {
    const socket = connect(socketPath);
    if (kind === 'bad-tokens') {
      socket.on('connect', () => socket.write(bytes));
      socket.on('data', () => socket.write(bytes));
    }
    socket.on('error', () => undefined);
    socket.on('close', () => setImmediate(open)).resume();
  };
  for (let i = 0; i < connections; i += 1) open();
  process.stdout.write('flooding');
}
