import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addTallies, judge, NO_TESTS, parseTally, tallyLine } from '../../build/tally.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('tally', () => {
  it('counts a skipped test as a failure only where skipping is forbidden', () => {
    const tally = { passed: 3, failed: 1, skipped: 2 };
    expect(judge(tally, false)).toEqual(tally);
    expect(judge(tally, true)).toEqual({ passed: 3, failed: 3, skipped: 0 });
  });

  it('adds up, and writes one line', () => {
    const sum = addTallies(addTallies(NO_TESTS, { passed: 2, failed: 0, skipped: 1 }), {
      passed: 1,
      failed: 4,
      skipped: 0,
    });
    expect(sum).toEqual({ passed: 3, failed: 4, skipped: 1 });
    expect(tallyLine(sum)).toBe('3 passed, 4 failed');
  });

  it('takes a half-written or foreign file for no tally', () => {
    expect(parseTally('{"passed":1,"failed":0,"skipped":0}')).toEqual({ passed: 1, failed: 0, skipped: 0 });
    for (const text of [
      '',
      '{"passed":1',
      'null',
      '[]',
      '{"passed":-1,"failed":0,"skipped":0}',
      '"1 passed"',
    ])
      expect(parseTally(text), text).toBeNull();
  });
});

describe('tally reporter', () => {
  let folder = '';
  beforeEach(() => {
    // Inside the repository, so that `vitest` resolves from there.
    mkdirSync(join(root, 'node_modules/.cache'), { recursive: true });
    folder = mkdtempSync(join(root, 'node_modules/.cache/tally-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function run(test: string, env: Record<string, string>): { code: number | null; tally: unknown } {
    const reporter = join(root, 'build/tally-reporter.ts');
    writeFileSync(join(folder, 'a.test.ts'), `import { beforeAll, describe, it } from 'vitest';\n${test}\n`);
    writeFileSync(
      join(folder, 'vitest.config.ts'),
      `import { TallyReporter } from ${JSON.stringify(reporter)};
export default { test: { include: ['*.test.ts'], exclude: [], allowOnly: false, reporters: [new TallyReporter()] } };`,
    );
    const file = join(folder, 'tally.json');
    const child = spawnSync(
      join(root, 'node_modules/.bin/vitest'),
      ['run', '--root', folder, '--config', join(folder, 'vitest.config.ts')],
      {
        encoding: 'utf8',
        env: {
          PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH ?? ''}`,
          HOME: tmpdir(),
          LANDLORD_TALLY_FILE: file,
          ...env,
        },
      },
    );
    return { code: child.status, tally: parseTally(readFileSync(file, 'utf8')) };
  }

  it('lets a skipped test pass by default and fails the run where skipping is forbidden', () => {
    const test = `it('runs', () => {}); it.skip('does not', () => {}); it.todo('never');`;
    expect(run(test, {})).toEqual({ code: 0, tally: { passed: 1, failed: 0, skipped: 2 } });
    expect(run(test, { LANDLORD_FORBID_SKIP: '1' })).toEqual({
      code: 1,
      tally: { passed: 1, failed: 2, skipped: 0 },
    });
  });

  it('counts what breaks outside a test, so that nothing fails without showing in the line', () => {
    expect(run(`throw new Error('broken file');`, {}).tally).toMatchObject({ failed: 1 });
    const hook = run(
      `describe('s', () => { beforeAll(() => { throw new Error('broken hook'); }); it('t', () => {}); });`,
      {},
    );
    expect(hook.code).toBe(1);
    expect(hook.tally).toMatchObject({ passed: 0 });
    expect(hook.tally).not.toMatchObject({ failed: 0 });
    const late = run(
      `it('t', async () => { setTimeout(() => { throw new Error('late'); }, 0); await new Promise((r) => setTimeout(r, 50)); });`,
      {},
    );
    expect(late.code).toBe(1);
    expect(late.tally).not.toMatchObject({ failed: 0 });
    expect(run(`it.only('t', () => {});`, {}).tally).not.toMatchObject({ failed: 0 });
  });
});
