import { describe, expect, it } from 'vitest';
import { findShapes, SHAPES } from '../../../core/leak/shapes.ts';

/** Random-looking text that is nobody's: put together here, so that no scanner of this repository finds a credential in it. */
const noise = (length: number, alphabet = 'q7Zk2VxT9mB4wNc8RdL5yHs3JfG6pKaE'): string =>
  Array.from({ length }, (_, i) => alphabet[(i * 11 + Math.floor(i / 7) * 5 + 3) % alphabet.length]).join('');
const base32 = (length: number): string => noise(length, 'Q7ZK2VXT4MBWNCRDL5YHS3JFG6PAEUOI');
const hex = (length: number): string => noise(length, '0a7f3c9e1b5d8264');
const segment = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Of every shape: what it finds, and what looks alike and is none. */
const EXAMPLES: Readonly<Record<string, { finds: readonly string[]; leaves: readonly string[] }>> = {
  github_token: {
    finds: [`ghp_${noise(36)}`, `gho_${noise(36)}`, `github_pat_${noise(22)}_${noise(59)}`],
    leaves: ['ghp_short', `ghp_${'x'.repeat(36)}`, 'ghp_000000000000000000000000000000000000', 'the prefix ghp_ marks a token'],
  },
  gitlab_token: { finds: [`glpat-${noise(20)}`], leaves: ['glpat-xxxxxxxxxxxxxxxxxxxx', 'glpat-'] },
  aws_access_key: { finds: [`AKIA${base32(16)}`, `ASIA${base32(16)}`], leaves: ['AKIAIOSFODNN7EXAMPLE', 'AKIA', `XAKIA${base32(16)}`] },
  aws_secret_key: {
    finds: [`aws_secret_access_key = ${noise(40)}`, `AWS_SECRET_ACCESS_KEY="${noise(40)}"`],
    leaves: ['aws_secret_access_key = <yours>', `sha1 ${hex(40)}`, 'aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'],
  },
  slack_token: { finds: [`xoxb-248163264128-502619482930-${noise(24)}`], leaves: ['xoxb-your-token', 'xoxb-xxxxxxxxxxxxxxxxxxxxxxxx'] },
  slack_webhook: { finds: [`hooks.slack.com/services/T0AB12CD3/B0AB12CD3/${noise(24)}`], leaves: ['hooks.slack.com/services/T/B/x'] },
  anthropic_key: { finds: [`sk-ant-api03-${noise(93)}`], leaves: ['sk-ant-api03-...', `sk-ant-api03-${'x'.repeat(93)}`] },
  openai_key: {
    finds: [`sk-proj-${noise(60)}`, `sk-${noise(20)}T3BlbkFJ${noise(20)}`, `sk-${noise(48)}`],
    leaves: ['sk-learn', 'sk-...', 'task-runner-with-a-long-name-that-goes-on-and-on', `sk-${'x'.repeat(48)}`],
  },
  stripe_key: {
    finds: [`sk_live_${noise(24)}`, `rk_live_${noise(24)}`, `whsec_${noise(32)}`],
    leaves: [`sk_test_${noise(24)}`, 'sk_live_x'],
  },
  npm_token: { finds: [`npm_${noise(36)}`], leaves: ['npm_config_registry', 'npm_package_dependencies_something_that_is_long'] },
  pypi_token: { finds: [`pypi-AgE${noise(60)}`], leaves: ['pypi-AgE', 'pypi-server'] },
  google_api_key: { finds: [`AIza${noise(35)}`], leaves: ['AIza', `AIza${noise(40)}`] },
  google_oauth_token: { finds: [`ya29.${noise(60)}`], leaves: ['ya29.'] },
  sendgrid_key: { finds: [`SG.${noise(22)}.${noise(43)}`], leaves: ['SG.a.b'] },
  huggingface_token: { finds: [`hf_${noise(34)}`], leaves: ['hf_hub_download'] },
  digitalocean_token: { finds: [`dop_v1_${hex(64)}`], leaves: ['dop_v1_'] },
  private_key: {
    finds: [
      `-----BEGIN RSA PRIVATE KEY-----\n${noise(64)}\n${noise(64)}\n-----END RSA PRIVATE KEY-----`,
      `-----BEGIN PRIVATE KEY-----\\n${noise(200)}\\n-----END PRIVATE KEY-----`,
      `-----BEGIN OPENSSH PRIVATE KEY-----\n${noise(300)}`,
    ],
    leaves: [
      '-----BEGIN PRIVATE KEY-----',
      "if (line === '-----BEGIN RSA PRIVATE KEY-----') return parse(line);",
      '-----BEGIN PUBLIC KEY-----',
    ],
  },
  jwt: {
    finds: [`${segment({ alg: 'HS256', typ: 'JWT' })}.${segment({ sub: '12345', name: 'Ada' })}.${noise(43)}`],
    leaves: [`${segment({ alg: 'none' })}.${segment({ sub: '1' })}.${noise(43)}`, `eyJ${noise(20)}.eyJ${noise(20)}.${noise(43)}`],
  },
  url_password: {
    finds: [`postgres://app:${noise(16)}@db.internal/x`, `https://oauth2:${noise(20)}@git.example.test/o/r`],
    leaves: ['postgres://user:password@localhost/db', 'https://$USER:$PASS@host', 'redis://localhost:6379', 'git@host:path'],
  },
  url_token: {
    finds: [`https://${noise(40)}@git.example.test/o/r`],
    leaves: ['https://user@example.test', 'see https://example.test/a@b'],
  },
  authorization_header: {
    finds: [
      `Authorization: Basic ${noise(24)}`,
      `"authorization": "Bearer ${noise(40)}"`,
      `http.extraheader='Authorization: Basic ${noise(24)}'`,
    ],
    leaves: ['Authorization: Bearer <token>', 'authorization: bearer xxxxxxxxxxxxxxxxxxxx', 'the authorization header'],
  },
};

describe('known shapes of credentials', () => {
  it('each has examples, and each example is of one', () => {
    expect(Object.keys(EXAMPLES).sort()).toEqual(SHAPES.map(({ name }) => name).sort());
  });

  it.each(Object.entries(EXAMPLES).flatMap(([name, { finds }]) => finds.map((text) => [name, text] as const)))(
    '%s is found: %s',
    (name, text) => {
      for (const around of [text, `x = "${text}"\n`, `${text} and more`, `first\n${text}\n`]) {
        expect(findShapes(around).map((span) => span.name)).toContain(name);
      }
    },
  );

  it.each(Object.entries(EXAMPLES).flatMap(([name, { leaves }]) => leaves.map((text) => [name, text] as const)))(
    '%s is not: %s',
    (_, text) => {
      expect(findShapes(`${text}\n`)).toEqual([]);
    },
  );

  it.each([
    ['a digest', `sha256:${hex(64)}`],
    ['a commit', hex(40)],
    ['a UUID', '3fa85f64-5717-4562-b3fc-2c963f66afa6'],
    ['an address with long ids', `https://example.test/a/${hex(32)}?next=${hex(48)}`],
    ['an example in source', 'const API_KEY = "example";'],
    ['an integrity line', `"integrity": "sha512-${noise(86)}=="`],
    ['a minified line', 'function(e,t){return e.sk-t.ya29||t.AIza}'],
  ])('BL-096 %s is no credential', (_, text) => {
    expect(findShapes(text)).toEqual([]);
  });

  it('says where the secret is, not where its surroundings are', () => {
    const password = noise(16);
    const text = `postgres://app:${password}@db/x`;
    const [span] = findShapes(text);
    expect(text.slice(span?.start, span?.end)).toBe(password);
  });

  it('finds one shape inside of what hints at another, and the second of two that touch', () => {
    const token = `ghp_${noise(36)}`;
    expect(findShapes(`https://oauth2:${token}@git.example.test/`).map(({ name }) => name)).toEqual(['github_token', 'url_password']);
    expect(findShapes(`a1://b:${noise(16)}@c2://d:${noise(16)}@host`).map(({ name }) => name)).toEqual(['url_password', 'url_password']);
  });

  it.each(['task-', 'npm_', 'eyJ', '://aaaaaa@', 'authoriz'])('finds every shape behind any number of %j', (hint) => {
    for (const [name, { finds }] of Object.entries(EXAMPLES)) {
      const found = findShapes(`${`${hint} `.repeat(1000)}\n${finds[0]}\n`);
      expect(
        found.map((span) => span.name),
        name,
      ).toContain(name);
    }
  });

  it('ends on text that was made to be slow', () => {
    const hostile = [
      'eyJ'.repeat(200_000),
      'https://'.repeat(100_000),
      `-----BEGIN PRIVATE KEY-----${'A '.repeat(300_000)}`,
      'aws'.repeat(300_000),
    ];
    for (const text of hostile) expect(findShapes(text).length).toBeLessThan(text.length);
  });
});
