import { describe, expect, it } from 'vitest';
import {
  refusalBody,
  refusalFor,
  refusalFrame,
  refusalHeaders,
} from '../../../electron/core/gateway/refusals.ts';

const BUSY = {
  code: 'local_backend_busy',
  message: 'local model in use',
  numbers: { heldForMs: 12_300 },
} as const;

describe('a refusal', () => {
  it('is 503 with when to come back, and not to be tried again by itself', () => {
    const refused = refusalFor(BUSY);
    expect(refused.status).toBe(503);
    expect(refusalHeaders(refused, {})).toMatchObject({ 'retry-after': '13', 'x-should-retry': 'false' });
    expect(refusalFor({ code: 'vram_denied', message: '' }).status).toBe(503);
    expect(refusalFor({ code: 'big_models_asleep', message: '' }).status).toBe(503);
    expect(refusalFor({ code: 'unknown_model', message: '' }).status).toBe(404);
    expect(refusalFor({ code: 'backend_unreachable', message: '' }).status).toBe(502);
  });

  it('has OpenAI’s shape with the numbers, and Anthropic’s on its own path', () => {
    expect(refusalBody(refusalFor(BUSY), 'openai')).toEqual({
      error: { message: BUSY.message, type: BUSY.code, code: BUSY.code, param: null, landlord: BUSY.numbers },
    });
    expect(refusalBody(refusalFor(BUSY), 'anthropic')).toMatchObject({
      type: 'error',
      error: { type: 'overloaded_error', code: BUSY.code, landlord: BUSY.numbers },
    });
  });

  it('is an event of its own inside a stream that has begun', () => {
    expect(refusalFrame(refusalFor(BUSY), 'openai')).toMatch(/^data: \{.*\}\n\n$/);
    expect(refusalFrame(refusalFor(BUSY), 'anthropic')).toMatch(/^event: error\ndata: \{.*\}\n\n$/);
  });
});
