import { describe, expect, it } from 'vitest';
import { contextHow, planView } from '../../../renderer/view/plan.ts';
import { samplePlan } from '../../support/answers.ts';

describe('a plan in words', () => {
  it('says what stays free where it fits', () => {
    expect(planView(samplePlan({ verdict: 'now' }))).toMatchObject({
      tone: 'calm',
      sentence: 'It fits. 2.1 GB would stay free.',
      offers: 'load',
      facts: ['needs 18.6 GB, as measured before', '20.7 GB free now', '4 GB kept for the desktop'],
    });
  });

  it('names who would leave for it', () => {
    const leaving = [{ model: 'router/vision-8b', bytes: 6.4e9 }];
    expect(planView(samplePlan({ verdict: 'leaving', leaving, freeAfterBytes: 5e9 })).sentence).toBe(
      'It fits once vision-8b (6.4 GB) left; then 5 GB would stay free.',
    );
  });

  it('offers to load anyway where it would be refused, with the figures and what may happen', () => {
    const plan = samplePlan({ verdict: 'denied', denial: 'It has no room.', risks: ['It stutters.'] });
    expect(planView(plan)).toMatchObject({
      tone: 'warning',
      denial: 'It has no room.',
      risks: ['It stutters.'],
      offers: 'anyway',
    });
    expect(planView(samplePlan({ verdict: 'unknown' })).offers).toBe('anyway');
    expect(planView(samplePlan({ verdict: 'loaded' })).offers).toBeNull();
  });

  it('gives each context its size, and says which do not fit', () => {
    const { contexts } = planView(samplePlan({}));
    expect(contexts.map((one) => [one.tokens, one.bytes, one.fits, one.present])).toEqual([
      ['8k', '17.4 GB', true, false],
      ['32k', '18.6 GB', true, true],
      ['128k', '24.1 GB', false, false],
    ]);
    expect(contexts[2]?.name).toBe('128k: 24.1 GB, does not fit');
  });

  it('never writes less than nothing as free', () => {
    expect(planView(samplePlan({ verdict: 'now', freeAfterBytes: -1 })).sentence).toBe(
      'It fits. 0 B would stay free.',
    );
    expect(planView(samplePlan({ verdict: 'now', freeAfterBytes: null })).sentence).toMatch(/can be told/);
  });

  it('says where a context is set, of each server that a model can be loaded on', () => {
    expect(contextHow('llama.cpp')).toMatch(/ctx-size/);
    expect(contextHow('ollama')).toMatch(/num_ctx/);
    expect([contextHow('openai'), contextHow('')]).toEqual([null, null]);
  });
});
