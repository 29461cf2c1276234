import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isHostPattern, isNetwork, isPathPattern } from '../../adapters/policy/formats.ts';
import { loadSettings } from '../../adapters/policy/settings.ts';
import { ENTRY } from './support/egress.ts';
import { copyOfShipped } from './support/policy-dir.ts';

describe('BL-073 a host pattern that names what anybody can register is refused', () => {
  test.each(['example.com', '*.example.com', '*.a.b.example.com', 'github.io', '*.acme.github.io', '*.acme.co.uk', 'xn--mnchen-3ya.de'])(
    '%s is one',
    (text) => expect(isHostPattern(text)).toBe(true),
  );

  test.each([
    ...[
      '*',
      '*.',
      '*.com',
      '*.co.uk',
      '*.com.au',
      '*.github.io',
      '*.s3.amazonaws.com',
      '*.nhs.uk',
      '*.s3.eu-west-1.amazonaws.com',
      'localhost',
      'com',
      '',
      '.',
      'example.com.',
    ],
    ...['EXAMPLE.com', '*example.com', 'a.*.com', '*.*.com', 'example.com:443', 'https://example.com', 'exa mple.com', '-a.com', 'a-.com'],
    ...['10.0.0.1', '*.0.0.1', '2130706433', 'a.0x7f', '[::1]', '::1', 'a..com', `${'a'.repeat(252)}.b`],
  ])('"%s" is none', (text) => expect(isHostPattern(text)).toBe(false));
});

describe('BL-075 a path pattern is one that can name a path', () => {
  test.each(['/', '/**', '/a/b', '/a/', '/repos/*/issues', '/public/**', '/*/**', '/a%20b', '/a;v=1', '/a..%3bx', '/%c3%a9'])(
    '%s is one',
    (text) => expect(isPathPattern(text)).toBe(true),
  );

  test.each([
    ...['', 'a', '*', '/public*', '/a/**/b', '/**/', '/a//b', '/a/../b', '/..;x/a', '/.', '/a?b', '/a#b', '/a b', '/a\\b', '/é'],
    ...['/%2e', '/%2f', '/%zz', '/%', '/%41', '/***', '/..%3bx', '/%c0%af', '/%E0%80%af', '/%ff'],
  ])('"%s" is none', (text) => expect(isPathPattern(text)).toBe(false));
});

describe('BL-077 a network is written out', () => {
  test.each(['198.41.0.0/24', '8.0.0.0/8', '198.41.0.4/32', '2606:2800::/32', '2606:2800:220:1::1/128'])('%s is one', (text) =>
    expect(isNetwork(text)).toBe(true),
  );

  test.each([
    '0.0.0.0/0',
    '8.0.0.0/7',
    '::/0',
    '198.41.0.0',
    '198.41.0.0/33',
    '198.41.0/24',
    '0xc6.1/24',
    '::ffff:1.2.3.4/120',
    '1.2.3.4/024',
    'x/24',
  ])('%s is none', (text) => expect(isNetwork(text)).toBe(false));
});

describe('data that names too much, or nothing, is not loaded', () => {
  async function withHosts(key: string, entry: string, place = 'hosts') {
    const dir = await copyOfShipped();
    const path = join(dir, 'data', 'egress.yaml');
    const text = await readFile(path, 'utf8');
    await writeFile(path, text.replace(`${place}: {}`, `${place}: { ${JSON.stringify(key)}: ${entry} }`));
    return loadSettings(dir);
  }

  test('control: what is right is', async () => {
    await expect(withHosts('*.example.com', `[${ENTRY}]`)).resolves.toBeDefined();
    await expect(withHosts('198.41.0.0/24', `[${ENTRY}]`, 'addresses')).resolves.toBeDefined();
    await expect(withHosts('admin.example.com', 'for people only', 'denied')).resolves.toBeDefined();
  });

  test('a host that is listed twice', async () => {
    await expect(withHosts('example.com', `[${ENTRY}], example.com: []`)).rejects.toMatchObject({
      message: expect.stringContaining('example.com is there more than once'),
    });
  });

  test.each([
    ['every host', '*', `[${ENTRY}]`, 'hosts'],
    ['a top level', '*.com', `[${ENTRY}]`, 'hosts'],
    ['a registry', '*.co.uk', `[${ENTRY}]`, 'hosts'],
    ['one label', 'localhost', `[${ENTRY}]`, 'hosts'],
    ['an address among the names', '93.184.216.34', `[${ENTRY}]`, 'hosts'],
    ['every address', '0.0.0.0/0', `[${ENTRY}]`, 'addresses'],
    ['a name among the networks', 'example.com', `[${ENTRY}]`, 'addresses'],
    ['a path in the middle', 'example.com', `[${ENTRY.replace('/**', '/a/**/b')}]`, 'hosts'],
    ['port 0', 'example.com', `[${ENTRY.replace('443', '0')}]`, 'hosts'],
    ['a scheme', 'example.com', `[${ENTRY.replace('https', 'ftp')}]`, 'hosts'],
    ['a method in lower case', 'example.com', `[${ENTRY.replace('GET', 'get')}]`, 'hosts'],
    ['an unknown term', 'example.com', `[${ENTRY.replace('}', ', any: true }')}]`, 'hosts'],
    ['no port at all', 'example.com', `[${ENTRY.replace('ports: [443], ', '')}]`, 'hosts'],
    ['a denial without a reason', 'example.com', '""', 'denied'],
  ])('%s', async (_, key, entry, place) => {
    await expect(withHosts(key, entry, place)).rejects.toMatchObject({
      code: 'policy_malformed',
      message: expect.stringContaining('data/egress.yaml'),
    });
  });
});
