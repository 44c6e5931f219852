import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ReferenceOptions,
  type ReferenceSource,
  referencesInChild,
} from '../../../../electron/core/ledger/footprint/reference-source.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-reference-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const GOOD = {
  weightsBytes: 1,
  kvBytes: 2,
  recurrentBytes: 0,
  computeBytes: 3,
  overheadBytes: 4,
  totalBytes: 10,
  layers: 2,
  kvLayers: 2,
  contextTokens: 512,
  notes: [],
};

/** A stand-in for the child: notes its start and does `onLine` for each question `line`, with `answer(text)`. */
async function standIn(name: string, onLine: string): Promise<string> {
  const path = join(folder, `${name}.mjs`);
  await writeFile(
    path,
    `import { appendFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
appendFileSync(${JSON.stringify(join(folder, `${name}.starts`))}, process.pid + '\\n');
const answer = (value) => writeSync(3, typeof value === 'string' ? value : JSON.stringify(value) + '\\n');
const good = { ok: true, value: ${JSON.stringify(GOOD)} };
process.stdin.once('end', () => process.exit(0));
createInterface({ input: process.stdin }).on('line', (line) => { const model = JSON.parse(line).modelPath; ${onLine} });
`,
  );
  return path;
}

const startsOf = async (name: string): Promise<readonly string[]> =>
  (await readFile(join(folder, `${name}.starts`), 'utf8').catch(() => '')).split('\n').filter(Boolean);
const load = (modelPath: string) => ({ modelPath, args: [], kind: 'cpu', build: null }) as const;

const open = new Set<ReferenceSource>();
afterAll(() => {
  for (const one of open) one.stop();
});
async function source(name: string, onLine: string, more: Partial<ReferenceOptions> = {}) {
  const entry = await standIn(name, onLine);
  const one = referencesInChild({ nodePath: process.execPath, entry, ...more });
  open.add(one);
  return one;
}
const isAlive = (pid: string): boolean => {
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
};
async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  for (let tries = 0; tries < 1_000 && !(await holds()); tries += 1)
    await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await holds()).toBe(true);
}

describe('the child that asks llama.cpp', () => {
  it('answers one question after another, and ends when nothing is asked', async () => {
    const one = await source('good', 'answer(good)', { idleMs: 200 });
    const answers = await Promise.all(['a', 'b', 'c'].map((path) => one.footprintOf(load(path))));
    expect(answers).toEqual([1, 2, 3].map(() => ({ ok: true, value: GOOD })));
    const [pid = '', ...others] = await startsOf('good');
    expect(others).toEqual([]);
    await until(() => !isAlive(pid));
    expect((await one.footprintOf(load('d'))).ok).toBe(true);
    expect(await startsOf('good')).toHaveLength(2);
  });

  it.each([
    ['crashes', 'process.kill(process.pid, "SIGABRT")', /its process ended/],
    ['ends', 'process.exit(0)', /its process ended/],
    ['talks-nonsense', 'answer("GGML_ASSERT failed\\n")', /nonsense/],
    ['answers-half', 'answer({ ok: true, value: { ...good.value, kvBytes: -1 } })', /nonsense/],
    ['answers-nothing', 'answer("null\\n")', /nonsense/],
    ['talks-without-end', 'for (;;) answer("x".repeat(65536))', /without end/],
  ])('that %s costs its own question alone', async (name, onLine, message) => {
    const one = await source(name, `if (model === 'bad') { ${onLine} } else answer(good)`);
    const [bad, good] = await Promise.all([one.footprintOf(load('bad')), one.footprintOf(load('good'))]);
    expect(bad).toMatchObject({ ok: false, error: { code: 'internal' } });
    expect(bad.ok ? '' : bad.error.message).toMatch(message);
    expect(good.ok).toBe(true);
    expect(await startsOf(name)).toHaveLength(2);
  });

  it('that hangs is killed at the limit, and the next question has a new one', async () => {
    const one = await source('hangs', "if (model === 'bad') for (;;); else answer(good)", { limitMs: 2_000 });
    const [bad, good] = await Promise.all([one.footprintOf(load('bad')), one.footprintOf(load('good'))]);
    expect(bad.ok ? '' : bad.error.message).toMatch(/took too long/);
    expect(good.ok).toBe(true);
    const [first = ''] = await startsOf('hangs');
    await until(() => !isAlive(first));
  });

  it('that fails each time is not started for ever', async () => {
    const one = await source('always', 'process.exit(1)');
    for (let question = 0; question < 6; question += 1)
      expect(await one.footprintOf(load('x'))).toMatchObject({ ok: false, error: { code: 'internal' } });
    expect(await startsOf('always')).toHaveLength(3);
  });

  it('passes on why a file can not be opened', async () => {
    const one = await source(
      'refuses',
      "answer({ ok: false, error: { code: 'bad_input', message: 'No.' } })",
    );
    expect(await one.footprintOf(load('x'))).toMatchObject({
      ok: false,
      error: { code: 'bad_input', message: 'No.' },
    });
  });

  it('that can not be started is an error', async () => {
    // Through a file: there `spawn` throws, as it does where there is no memory for a process.
    for (const nodePath of ['/nonexistent/node', '/etc/passwd/node']) {
      const one = referencesInChild({ nodePath });
      open.add(one);
      for (const answer of await Promise.all([one.footprintOf(load('x')), one.footprintOf(load('y'))]))
        expect(answer, nodePath).toMatchObject({ ok: false, error: { code: 'internal' } });
    }
  });

  it('ends with a stop, and whoever waits is told', async () => {
    const one = await source('stopped', '');
    const waiting = [one.footprintOf(load('a')), one.footprintOf(load('b'))];
    await until(async () => (await startsOf('stopped')).length === 1);
    one.stop();
    for (const answer of await Promise.all(waiting))
      expect(answer).toMatchObject({ ok: false, error: { code: 'cancelled' } });
    const [pid = ''] = await startsOf('stopped');
    await until(() => !isAlive(pid));
    expect((await one.footprintOf(load('c'))).ok).toBe(false);
  });
});
