import { execFile } from 'node:child_process';
import type { Environment } from '../config/file.ts';

/**
 * Tells the service manager that started this process how it is (sd_notify(3)), when one listens (`NOTIFY_SOCKET`). Its own program does it, since
 * Node has no datagram socket of that kind; the unit needs `NotifyAccess=all`. Never rejects: @returns why it could not, undefined when it could.
 */
export function notifyManager(env: Environment, what: 'ready' | 'stopping'): Promise<string | undefined> {
  if (env.NOTIFY_SOCKET === undefined || env.NOTIFY_SOCKET === '') return Promise.resolve(undefined);
  const message = what === 'ready' ? '--ready' : 'STOPPING=1';
  const { PATH = '/usr/bin:/bin', NOTIFY_SOCKET } = env;
  return new Promise((resolve) => {
    execFile('systemd-notify', [message], { env: { PATH, NOTIFY_SOCKET }, timeout: 5000 }, (error) => resolve(error?.message));
  });
}
