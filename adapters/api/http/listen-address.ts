import { BlockList, isIP, isIPv6 } from 'node:net';
import type { ApiConfig } from '../../../core/config.ts';
import { ConfigError } from '../../../core/errors.ts';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly loopback: boolean;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

export const isLoopback = (address: string): boolean => isIP(address) !== 0 && LOOPBACK.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');

/**
 * The address to listen on. A name is none, `localhost` excepted: what it resolves to may change. Loopback is free; any other address needs
 * the reason that config gives, since bearer tokens then cross a network, and never shows `/metrics` without a token.
 * @throws ConfigError `config_malformed`
 */
export function listenAddress({ listen, nonLoopback, metrics }: ApiConfig): ListenAddress {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(listen) ?? [];
  const named = bracketed ?? plain ?? '';
  const host = named === 'localhost' ? '127.0.0.1' : named;
  const port = Number(digits);
  if (isIP(host) === 0 || digits === '' || port > 65_535) {
    throw new ConfigError('config_malformed', `api.listen: ${listen} is no address and port`, {
      hint: 'such as 127.0.0.1:7270 or [::1]:7270',
    });
  }
  const loopback = isLoopback(host);
  if (!loopback && nonLoopback === undefined) {
    throw new ConfigError('config_malformed', `api.listen: ${host} is not a loopback address, and bearer tokens would cross a network`, {
      hint: 'listen on 127.0.0.1 behind a proxy that speaks TLS, or say in the configuration file why not: api.nonLoopback: "…"',
    });
  }
  if (!loopback && metrics === 'open') {
    throw new ConfigError('config_malformed', 'api.metrics: open is for a loopback address only', { hint: 'api.metrics: operator' });
  }
  return { host, port, loopback };
}

/** Whether a Host header names this server: loopback, the address itself, or a name that config lists. A page of another site cannot. */
export function isOurHost(header: string | undefined, address: ListenAddress, hosts: readonly string[]): boolean {
  const name = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::\d{1,5})?$/.exec(header ?? '');
  const host = (name?.[1] ?? name?.[2] ?? '').toLowerCase();
  if (host === 'localhost' || isLoopback(host) || host === address.host) return true;
  return hosts.some((known) => known.toLowerCase() === host);
}
