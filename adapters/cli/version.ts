import { readFileSync } from 'node:fs';

/** The version in the package's own manifest: at the root in development, copied beside the emitted code when built. */
export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return (manifest as { version: string }).version;
}
