import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { figure } from '../support/figures.ts';

interface Locked {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
}

const read = (name: string): Record<string, unknown> => JSON.parse(readFileSync(name, 'utf8'));
const strings = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? { ...value } : {};

const manifest = read('package.json');
const locked = Object.entries(strings(read('package-lock.json').packages)).flatMap(([path, facts]) => {
  const one: Locked = strings(facts);
  return path === '' ? [] : [{ path, name: path.slice(path.lastIndexOf('node_modules/') + 13), ...one }];
});

/** Of each a copy may be given on with what is made of it; MPL-2.0 asks for its own files alone, as they come. */
const MAY_BE_USED = new Set([
  ...['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'BlueOak-1.0.0', 'Unlicense'],
  ...['WTFPL', 'MPL-2.0', 'Python-2.0', 'CC0-1.0'],
]);

it('every package is pinned by what it is, and under a licence that is listed here', () => {
  const counts = new Map<string, number>();
  for (const { path, license, integrity } of locked) {
    expect(integrity, path).toMatch(/^sha512-/);
    const choices = (license ?? 'none').replaceAll(/[()]/g, '').split(' OR ');
    expect(
      choices.filter((one) => MAY_BE_USED.has(one)),
      `${path}: ${license}`,
    ).not.toEqual([]);
    counts.set(license ?? 'none', (counts.get(license ?? 'none') ?? 0) + 1);
  }
  const sorted = [...counts].toSorted(([, one], [, other]) => other - one);
  figure(
    `licences of ${locked.length} packages`,
    sorted.map(([name, count]) => `${count} ${name}`).join(', '),
  );
});

it('run-time packages are few, and each one version exactly', () => {
  const runtime = Object.entries(strings(manifest.dependencies));
  expect(runtime.length).toBeLessThanOrEqual(9);
  for (const [name, version] of runtime) expect(version, name).toMatch(/^\d+\.\d+\.\d+$/);
});

it('of every package that has an install script it is decided whether that runs, and of no other', () => {
  const decided = Object.keys(strings(manifest.allowScripts));
  const have = new Set(locked.flatMap((one) => (one.hasInstallScript === true ? [one.name] : [])));
  expect(decided.toSorted()).toEqual([...have].toSorted());
  const allowed = Object.entries(strings(manifest.allowScripts)).flatMap(([name, may]) =>
    may === true ? [name] : [],
  );
  expect(allowed.toSorted()).toEqual(['koffi', 'node']);
});
