import { afterEach, expect, it } from 'vitest';
import { FallbackHealth, isAway } from '../../../electron/core/gateway/fallback-health.ts';
import { fail, ok } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import type { FallbackSetting } from '../../../shared/settings.ts';
import { until } from '../../support/router.ts';

const entry = (name: string): FallbackSetting => ({
  name,
  url: `http://${name}.invalid/v1`,
  apiKeyEnv: null,
  models: {},
});
const iso = (ms: number): string => `at ${ms}`;
let health: FallbackHealth;
afterEach(() => health.stop());

function bench() {
  const one = { nowMs: 1_000, answers: false, probes: 0, events: [] as NewEvent[] };
  health = new FallbackHealth({
    async probe() {
      one.probes += 1;
      return one.answers ? ok(undefined) : fail('backend_unreachable', 'Nothing listens there.');
    },
    tell: (event) => one.events.push(event),
    monotonicMs: () => one.nowMs,
    pace: { firstMs: 5, mostMs: 20 },
  });
  return one;
}

it('one that is well is never asked, and may be tried', async () => {
  const one = bench();
  expect(health.objection(entry('cloud'))).toBeNull();
  health.worked(entry('cloud'));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect([one.probes, one.events]).toEqual([0, []]);
  expect(health.states([entry('cloud')], iso)).toEqual([
    { name: 'cloud', url: 'http://cloud.invalid/v1', status: 'ready', since: null, error: null },
  ]);
});

it('one that failed is passed over and asked again and again, until it answers', async () => {
  const one = bench();
  health.failed(entry('cloud'), 'connection refused');
  health.failed(entry('cloud'), 'connection refused');
  one.nowMs = 21_000;
  expect(health.objection(entry('cloud'))).toMatch(/^cloud has not answered for 20 s \(/);
  expect(health.states([entry('cloud')], iso)).toMatchObject([{ status: 'down', since: 'at 1000' }]);
  await until(() => one.probes >= 3, 20_000, 'three questions');
  expect(health.objection(entry('cloud'))).toMatch(/Nothing listens there\)/);
  one.answers = true;
  await until(() => health.objection(entry('cloud')) === null, 20_000, 'it to be well again');
  expect(one.events.map((event) => event.kind)).toEqual(['backend_down', 'backend_up']);
  expect(one.events[1]?.numbers.downMs).toBe(20_000);
});

it('one that is no longer set is asked no more', async () => {
  const one = bench();
  health.failed(entry('old'), 'gone');
  expect(health.states([entry('new')], iso)).toHaveLength(1);
  expect(health.objection(entry('old'))).toBeNull();
  const { probes } = one;
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(one.probes).toBe(probes);
});

it('what a gateway says of a dead server is no answer; a refusal is one', () => {
  expect([502, 503, 504].every(isAway)).toBe(true);
  expect([200, 400, 401, 404, 429, 500].some(isAway)).toBe(false);
});
