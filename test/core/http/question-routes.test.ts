import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { QUESTION_NAMES, QUESTIONS } from '../../../shared/ipc-schema.ts';
import { samplePlan } from '../../support/answers.ts';
import { BEARER, serveFake } from '../../support/serve-fake.ts';

let served: Awaited<ReturnType<typeof serveFake>>;

async function post(path: string, body: object) {
  const answer = await fetch(`${served.server.url}${path}`, {
    method: 'POST',
    headers: { ...BEARER, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const value: unknown = await answer.json();
  return { status: answer.status, body: value };
}

beforeEach(async () => {
  served = await serveFake();
});
afterEach(async () => {
  await served.server.stop();
});

describe('questions over HTTP', () => {
  it('are answered with what the runtime says', async () => {
    served.runtime.answers = { plan: samplePlan({}) };
    const answer = await post('/api/plan', { model: 'router/qwen-27b' });
    expect(answer).toMatchObject({ status: 200, body: { model: 'router/qwen-27b', verdict: 'now' } });
    expect(served.runtime.asked).toEqual([{ name: 'plan', args: { model: 'router/qwen-27b' } }]);
  });

  it('are refused with a wrong or a strange argument, and not asked', async () => {
    for (const body of [{}, { model: 1 }, { model: 'router/a', extra: true }]) {
      const answer = await post('/api/plan', body);
      expect(answer).toMatchObject({ status: 400, body: { error: { code: 'bad_input' } } });
    }
    expect(served.runtime.asked).toEqual([]);
  });

  it('need the token, each of them', async () => {
    for (const name of QUESTION_NAMES) {
      const answer = await fetch(`${served.server.url}/api/${QUESTIONS[name]}`, { method: 'POST' });
      expect(answer.status, name).toBe(401);
    }
    expect(served.runtime.asked).toEqual([]);
  });
});
