import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleReplay } from '../support/answers.ts';
import { landlord, startTestRuntime, type TestRuntime } from '../support/landlord.ts';

let test: TestRuntime;
beforeAll(async () => {
  test = await startTestRuntime();
  test.runtime.answers = { replay: sampleReplay({}) };
});
afterAll(async () => {
  await test.dispose();
});

const replay = (...args: readonly string[]) => landlord(['replay', ...args, '--state-dir', test.stateDir]);

describe('landlord replay', () => {
  it('says what another floor would have done, in the words of the window', async () => {
    const ran = await replay('--floor', '6GB', '--max-big', 'fit', '--last', '41h');
    expect(ran.code).toBe(0);
    expect(ran.out).toContain('As set now (floor 4.0 GB, as many big models as fit): 3 unloads, 2 of them');
    expect(ran.out).toContain(
      'So (floor 6.0 GB, as many big models as fit): 5 unloads, 4 of them loaded again',
    );
    expect(ran.out).toMatch(/Times memory was short +3 +5\n/);
    expect(ran.out).toContain('router/qwen-27b: unloaded 3, loaded again 2');
    expect(test.runtime.asked.at(-1)).toMatchObject({
      name: 'replay',
      args: { floorBytes: 6e9, maxBig: 0, deviceId: null },
    });
  });

  it('gives all figures as JSON', async () => {
    const ran = await replay('--json');
    expect(JSON.parse(ran.out)).toMatchObject({ readings: 14_760, present: { evictions: 3 } });
    expect(test.runtime.asked.at(-1)).toMatchObject({ args: { floorBytes: null, maxBig: null } });
  });

  it.each([
    [['--floor', 'much'], /--floor is no amount of memory/],
    [['--max-big', '0'], /--max-big takes fit, or a number/],
    [['--last', 'ages'], /--last is no duration/],
  ])('%j is a usage error', async (args, message) => {
    const ran = await replay(...args);
    expect(ran.code).toBe(64);
    expect(ran.err).toMatch(message);
  });
});
