// SPDX-License-Identifier: Apache-2.0

// Writes static/sources.sha256, by which tests without Node find out whether
// the committed build is of the committed sources (test_build.py).

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** What a build is made of, relative to this package. */
const SOURCES = [
  'index.html',
  'package.json',
  'package-lock.json',
  'scripts',
  'src',
  'tsconfig.json',
  'vite.config.ts',
];

function* files(path) {
  let entries;
  try {
    entries = readdirSync(path, { withFileTypes: true });
  } catch (problem) {
    if (problem.code !== 'ENOTDIR') {
      throw problem;
    }
    yield path;
    return;
  }
  for (const entry of entries) {
    yield* files(join(path, entry.name));
  }
}

/** Digest the sources but for their tests: by name, each name and content. */
export function digest() {
  const names = SOURCES.flatMap((source) => [...files(join(ROOT, source))])
    .map((path) => relative(ROOT, path).split(sep).join('/'))
    .filter((name) => !/\.test\.tsx?$/.test(name))
    .sort();
  const all = createHash('sha256');
  for (const name of names) {
    const one = createHash('sha256').update(readFileSync(join(ROOT, name)));
    all.update(`${one.digest('hex')}  ${name}\n`);
  }
  return all.digest('hex');
}

/** The plugin of Vite that writes the digest beside what was built. */
export function sourcesDigest() {
  return {
    name: 'vsched-sources-digest',
    apply: 'build',
    closeBundle() {
      writeFileSync(join(ROOT, 'static', 'sources.sha256'), `${digest()}\n`);
    },
  };
}
