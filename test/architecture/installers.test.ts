import { describe, expect, it } from 'vitest';
import { read, trackedFiles } from './sources.ts';

/** Texts that are run: scripts, and what any source hands to a shell. */
const files = trackedFiles().filter(
  (file) => /^\.ci\/|\.(ts|js|sh|json|ya?ml)$|Dockerfile/.test(file) && !file.endsWith('installers.test.ts'),
);
const scripts = trackedFiles().filter((file) => /^#!.*\b(ba)?sh\b/.test(read(file).slice(0, 80)) || /\.sh$/.test(file));

/** What is fetched goes into a shell, or through a pipe whose failure nobody sees. */
const PIPED = /\b(?:curl|wget|fetch)\b[^\n|]*\|\s*(?:sudo\s+)?(?:ba|da|z)?sh\b/;

/** Why a shell script would go on after a failure; undefined when it would not. */
function carelessness(text: string): string | undefined {
  const lines = text.split('\n').filter((line) => !/^\s*#(?!!)/.test(line));
  const bash = /^#!.*\bbash\b/.test(text);
  // The shell of PID 1 has no pipefail: there a pipe is not allowed.
  const piped = lines.some((line) =>
    /[^|]\|(?![|&])/.test(line.replace(/'[^']*'|"[^"]*"/g, '').replace(/^.*\bcase\b.*$|^\s*[^()\s]+(?:\s*\|\s*[^()\s]+)*\)/, '')),
  );
  if (!bash) return piped ? 'a pipe without pipefail' : undefined;
  return /^set -[a-z]*e[a-z]*u?[a-z]*o pipefail$/m.test(text) ? undefined : 'no set -euo pipefail';
}

describe('finding 14: installers', () => {
  it('nothing that is fetched is piped into a shell', () => {
    expect(files.filter((file) => PIPED.test(read(file)))).toEqual([]);
  });

  it('every shell script fails when a part of it fails', () => {
    expect(scripts).toEqual(expect.arrayContaining(['.ci/run', 'harnesses/guest/init.sh']));
    expect(scripts.flatMap((file) => carelessness(read(file)) ?? [])).toEqual([]);
  });

  it('control: such pipes and scripts are found', () => {
    expect("curl --proto '=https' -sSf https://sh.example.test | sh -s -- -y").toMatch(PIPED);
    expect('wget -O- https://sh.example.test | sudo bash').toMatch(PIPED);
    expect('curl -o file https://sh.example.test && sh file').not.toMatch(PIPED);
    expect(carelessness('#!/usr/bin/env bash\nset -e\nfalse | true\n')).toBe('no set -euo pipefail');
    expect(carelessness('#!/bin/sh\nset -eu\nfetch x | tee y\n')).toBe('a pipe without pipefail');
    expect(carelessness('#!/usr/bin/env bash\nset -euo pipefail\na | b\n')).toBeUndefined();
    expect(carelessness('#!/bin/sh\n# a | b\na || b\n')).toBeUndefined();
  });
});
