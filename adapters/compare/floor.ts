import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';

/** Row size of a floor commit: about what a ledger row with its decision and event takes. */
const ROW_BYTES = 2048;

/** Bare commits with the store's own settings (WAL, synchronous FULL) in `directory`, which must lie on the state's file system. */
export function openCommitFloor(directory: string): { sampleMs(): number; close(): void } {
  const database = new DatabaseSync(join(directory, 'floor.db'));
  database.exec('pragma journal_mode = wal; pragma synchronous = full; create table row (body text not null)');
  const insert = database.prepare('insert into row (body) values (?)');
  const body = 'x'.repeat(ROW_BYTES);
  return {
    sampleMs() {
      const startedAt = performance.now();
      database.exec('begin immediate');
      insert.run(body);
      database.exec('commit');
      return performance.now() - startedAt;
    },
    close: () => database.close(),
  };
}

/** Bare round trips: HTTP/1.1 with a small JSON body over a unix socket to another process, on a kept connection. */
export async function openRoundTripFloor(directory: string): Promise<{ sampleMs(): Promise<number>; close(): Promise<void> }> {
  const socketPath = join(directory, 'floor.sock');
  const entry = fileURLToPath(new URL('./floor-peer.ts', import.meta.url));
  const peer = fork(import.meta.url.endsWith('.js') ? entry.replace(/\.ts$/, '.js') : entry, [socketPath], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  await once(peer, 'message');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const body = JSON.stringify({ key: { step: 1, call: 2 }, capability: 'shell.exec', args: { argv: ['git', 'status'] } });
  const sampleMs = async (): Promise<number> => {
    const startedAt = performance.now();
    const call = request({ socketPath, agent, method: 'POST', path: '/', headers: { 'content-type': 'application/json' } });
    call.end(body);
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    return performance.now() - startedAt;
  };
  await sampleMs();
  return {
    sampleMs,
    async close() {
      agent.destroy();
      peer.disconnect();
      if (peer.exitCode === null && peer.signalCode === null) await once(peer, 'exit');
    },
  };
}
