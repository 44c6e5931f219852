import { describe, expect, it } from 'vitest';
import { parseRouterEvent } from '../../../electron/core/backends/router-events.ts';

const event = (value: unknown) => parseRouterEvent(JSON.stringify(value));

describe("a router's events", () => {
  it.each(['model_status', 'status_change'])('reads a status under the name %s', (name) => {
    expect(event({ model: 'a', event: name, data: { status: 'unloaded', exit_code: 1 } })).toMatchObject({
      type: 'status',
      model: 'a',
      status: 'unloaded',
      exitCode: 1,
      failed: false,
    });
  });

  it('gives progress over all stages', () => {
    const progress = { stages: ['text_model', 'mmproj_model'], current: 'mmproj_model', value: 0.5 };
    expect(event({ model: 'a', event: 'x', data: { status: 'loading', progress } })).toMatchObject({
      progress: 0.75,
    });
    expect(event({ model: 'a', event: 'x', data: { status: 'loading' } })).toMatchObject({ progress: null });
  });

  it('gives the context a model was loaded with', () => {
    const data = { status: 'loaded', info: { meta: { n_ctx: 4096 } } };
    expect(event({ model: 'a', event: 'status_change', data })).toMatchObject({ contextTokens: 4096 });
  });

  it('tells a removed model and a changed list', () => {
    expect(event({ model: 'a', event: 'model_remove' })).toEqual({ type: 'removed', model: 'a' });
    expect(event({ model: '*', event: 'models_reload' })).toEqual({ type: 'reload' });
  });

  it('passes over what it can not read', () => {
    for (const text of ['', '[DONE]', '{"event":"x"}', '{"model":"a","data":{}}', 'null', '3']) {
      expect(parseRouterEvent(text)).toBeNull();
    }
  });
});
