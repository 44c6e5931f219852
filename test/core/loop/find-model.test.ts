import { describe, expect, it } from 'vitest';
import { findModel } from '../../../electron/core/loop/find-model.ts';
import { modelView } from '../../support/model-view.ts';

describe('the model a person means', () => {
  const views = [
    modelView({ backend: 'router', name: 'qwen-27b', aliases: ['big'] }),
    modelView({ backend: 'router', name: 'org/model:Q4' }),
    modelView({ backend: 'other', name: 'qwen-27b' }),
    modelView({ backend: 'other', name: 'bge-m3' }),
  ];

  it.each([
    ['router/qwen-27b', 'router/qwen-27b'],
    ['bge-m3', 'other/bge-m3'],
    ['big', 'router/qwen-27b'],
    ['org/model:Q4', 'router/org/model:Q4'],
    ['router/org/model:Q4', 'router/org/model:Q4'],
  ])('%s is %s', (wanted, id) => {
    expect(findModel(views, wanted)).toMatchObject({ ok: true, value: { id } });
  });

  it('is asked for when several backends have it', () => {
    const found = findModel(views, 'qwen-27b');
    expect(found).toMatchObject({ ok: false, error: { code: 'unknown_model' } });
    if (!found.ok)
      expect(found.error.message).toBe(
        'Several backends have qwen-27b: say router/qwen-27b or other/qwen-27b.',
      );
  });

  it('is told with what there is', () => {
    const found = findModel(views, 'nope');
    if (found.ok) throw new Error('found');
    expect(found.error.message).toContain(
      'There are router/qwen-27b, router/org/model:Q4, other/qwen-27b and other/bge-m3.',
    );
    const none = findModel([], 'nope');
    if (none.ok) throw new Error('found');
    expect(none.error.message).toContain('no backend answers');
    const down = findModel([], 'nope', ['router']);
    if (down.ok) throw new Error('found');
    expect(down.error.message).toContain('router does not answer now');
  });
});
