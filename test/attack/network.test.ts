import { createSocket, type Socket } from 'node:dgram';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import { type AttackStep, attackTests, toolSays } from '../support/attack.ts';

/** What listens on the host, outside every sandbox. */
const abstractName = `outwork-attack-${process.pid}`;
let tcp4: Server;
let tcp6: Server;
let abstractSocket: Server;
let udp: Socket;
let datagrams = 0;

const listening = (server: Server, ...where: [string] | [number, string]) =>
  new Promise<Server>((resolve, reject) => {
    server.once('error', reject);
    if (where.length === 1) server.listen({ path: where[0] }, () => resolve(server));
    else server.listen(where[0], where[1], () => resolve(server));
  });
const answering = () => createServer((socket) => socket.end('host-answers').on('error', () => {}));
const portOf = (server: Server) => (server.address() as { port: number }).port;

beforeAll(async () => {
  tcp4 = await listening(answering(), 0, '127.0.0.1');
  tcp6 = await listening(answering(), 0, '::1');
  abstractSocket = await listening(answering(), `\0${abstractName}`);
  udp = createSocket('udp4').on('message', () => {
    datagrams += 1;
  });
  await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve));
});
afterAll(() => {
  for (const server of [tcp4, tcp6, abstractSocket]) server?.close();
  udp?.close();
});

/** Connects from a tool and prints what came back, or the error. */
const connect = (target: () => string): AttackStep => {
  return (sandbox) => {
    const program = `require('node:net').connect(${target()}).on('data', (d) => console.log(String(d))).on('error', (e) => console.log(e.code))`;
    return toolSays(sandbox, ['/opt/outwork/node', '-e', program], /host-answers/);
  };
};

const sendDatagram: AttackStep = async (sandbox) => {
  const before = datagrams;
  const { port } = udp.address();
  const program = `const s = require('node:dgram').createSocket('udp4'); s.send('x', ${port}, '127.0.0.1', (e) => { console.log(e ? e.code : 'sent'); s.close() })`;
  const { stdout } = await sandbox.tool(['/opt/outwork/node', '-e', program]);
  // A datagram on loopback is queued before `send` returns; a second one of our own comes after it.
  const arrived = new Promise<void>((resolve) => udp.once('message', () => resolve()));
  const own = createSocket('udp4');
  own.send('y', port, '127.0.0.1');
  await arrived;
  own.close();
  await new Promise((resolve) => setImmediate(resolve));
  return { through: datagrams - before > 1, evidence: `${stdout.trim()}, ${datagrams - before - 1} arrived` };
};

/** By the executor, which has the better chance: a socket that sees and makes packets of any kind. */
const rawSockets: AttackStep = async (sandbox) => {
  const program = 'use Socket; print "raw\\n" if socket(S, PF_INET, SOCK_RAW, 1); print "packet\\n" if socket(P, 17, SOCK_RAW, 0);';
  return toolSays(sandbox, ['perl', '-e', program], /raw|packet/, { uid: 0, gid: 0 });
};

const hostNetwork = { when: 'the sandbox shares the host’s network', weakening: { without: ['--unshare-net'] } };

attackTests([
  {
    threat: 'T10',
    title: 'reaches a server on the host’s loopback',
    actor: 'tool',
    attempt: connect(() => `${portOf(tcp4)}, '127.0.0.1'`),
    control: hostNetwork,
  },
  {
    threat: 'T10',
    title: 'reaches a server on the host’s IPv6 loopback',
    actor: 'tool',
    attempt: connect(() => `${portOf(tcp6)}, '::1'`),
    control: hostNetwork,
  },
  { threat: 'T10', title: 'sends a datagram to the host', actor: 'tool', attempt: sendDatagram, control: hostNetwork },
  {
    threat: 'T10',
    title: 'opens raw and packet sockets',
    actor: 'executor',
    attempt: rawSockets,
    control: {
      when: 'the executor keeps NET_RAW',
      weakening: {
        replace: {
          CAP_NET_BIND_SERVICE: ['CAP_NET_BIND_SERVICE', '--cap-add', 'CAP_NET_RAW'],
          '--bounding-set=-all,+setuid,+setgid,+kill,+net_bind_service': ['--bounding-set=+all'],
        },
      },
    },
  },
  {
    threat: 'T11',
    title: 'reaches an abstract unix socket of the host',
    actor: 'tool',
    attempt: connect(() => `{ path: '\\0${abstractName}' }`),
    control: hostNetwork,
  },
]);
