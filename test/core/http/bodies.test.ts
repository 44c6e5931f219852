import { describe, expect, it } from 'vitest';
import {
  drainCommand,
  guardsCommand,
  makeRoomCommand,
  modelCommand,
  plainCommand,
  reportedEvent,
  sleepCommand,
  turnWish,
} from '../../../electron/core/http/bodies.ts';

const message = (result: { ok: boolean; error?: { code: string; message: string } }): string | null =>
  result.error?.code === 'bad_input' ? result.error.message : null;

describe('the body of a request', () => {
  it('may be absent or lack any field', () => {
    expect(modelCommand('load', 'r/m', undefined)).toEqual({
      ok: true,
      value: { type: 'load', model: 'r/m', force: false },
    });
    expect(modelCommand('pin', 'r/m', {})).toEqual({ ok: true, value: { type: 'pin', model: 'r/m' } });
    expect(sleepCommand({ for: null })).toEqual({ ok: true, value: { type: 'sleep', forMs: null } });
    expect(makeRoomCommand(null)).toEqual({
      ok: true,
      value: { type: 'makeRoom', freeBytes: null, deviceId: null },
    });
    expect(drainCommand(undefined)).toEqual({ ok: true, value: { type: 'drain' } });
  });

  it('means what its fields say', () => {
    expect(modelCommand('unload', 'r/m', { force: true })).toMatchObject({ value: { force: true } });
    expect(sleepCommand({ for: '15min' })).toMatchObject({ value: { forMs: 900_000 } });
    expect(sleepCommand({ for: 5000 })).toMatchObject({ value: { forMs: 5000 } });
    expect(makeRoomCommand({ bytes: '8GB', device: 'sim:0' })).toMatchObject({
      value: { freeBytes: 8e9, deviceId: 'sim:0' },
    });
    expect(makeRoomCommand({ bytes: 8e9 })).toMatchObject({ value: { freeBytes: 8e9 } });
    expect(guardsCommand({ mode: 'pause', for: '1h', backend: 'r' })).toEqual({
      ok: true,
      value: { type: 'guards', mode: 'pause', forMs: 3_600_000, backend: 'r' },
    });
  });

  it('asks for a turn, at once and interactive unless it says otherwise', () => {
    expect(turnWish({ backend: 'r' })).toEqual({
      ok: true,
      value: { backend: 'r', model: null, session: null, class: 'interactive', waitMs: 0 },
    });
    expect(turnWish({ model: 'm', session: 's', class: 'batch', waitMs: 3_600_000 })).toMatchObject({
      value: { model: 'm', session: 's', class: 'batch', waitMs: 3_600_000 },
    });
  });

  it('with a field that is not known is refused, so that no misspelt `force` is lost', () => {
    expect(message(modelCommand('unload', 'r/m', { forse: true }))).toBe(
      '`forse` is not known here; known are `force`.',
    );
    expect(message(modelCommand('pin', 'r/m', { force: true }))).toBe(
      '`force` is not known here; no field is.',
    );
    expect(message(plainCommand('wake', { constructor: 1 }))).toMatch(/`constructor` is not known/);
    expect(message(plainCommand('wake', JSON.parse('{"__proto__":1}')))).toMatch(/`__proto__` is not known/);
  });

  it.each([
    [modelCommand('load', 'r/m', { force: 'yes' }), '`force` must be true or false.'],
    [modelCommand('load', 'r/m', []), 'The body must be a JSON object, such as {}.'],
    [turnWish({}), 'Say for which `model` or `backend` the turn is.'],
    [turnWish({ model: 'm', session: 'x'.repeat(201) }), '`session` must be a text of 1 to 200 characters.'],
    [turnWish({ model: 'x'.repeat(401) }), '`model` must be a text of 1 to 400 characters.'],
    [turnWish({ model: 'm', class: 'urgent' }), '`class` must be "interactive" or "batch".'],
    [
      turnWish({ model: 'm', waitMs: 3_600_001 }),
      '`waitMs` must be a whole number of milliseconds from 0 to 3600000.',
    ],
    [
      turnWish({ model: 'm', wait: 5 }),
      '`wait` is not known here; known are `model`, `backend`, `session`, `class`, `waitMs`.',
    ],
    [drainCommand('now'), 'The body must be a JSON object, such as {}.'],
    [
      sleepCommand({ for: true }),
      '`for` must be a text with its unit, such as "15min", or a number of milliseconds.',
    ],
    [
      sleepCommand({ for: -1 }),
      '`for` must be longer than 0 and at most ten years; leave it out for no end.',
    ],
    [
      makeRoomCommand({ bytes: 1.5 }),
      '`bytes` must be a text with its unit, such as "8GB", or a whole number of bytes above 0.',
    ],
    [
      makeRoomCommand({ bytes: 0 }),
      '`bytes` must be a text with its unit, such as "8GB", or a whole number of bytes above 0.',
    ],
    [makeRoomCommand({ device: 7 }), '`device` must be a text that is not empty.'],
    [guardsCommand({}), '`mode` must be "on", "observe" or "pause".'],
    [guardsCommand({ mode: 'off' }), '`mode` must be "on", "observe" or "pause".'],
    [guardsCommand({ mode: 'on', backend: '' }), '`backend` must be a text that is not empty.'],
    [
      guardsCommand({ mode: 'on', for: '1h' }),
      '`for` goes with mode "pause" only; "on" stays until it is changed.',
    ],
  ])('with a wrong field is refused in a sentence that says what is right: %#', (result, sentence) => {
    expect(message(result)).toBe(sentence);
  });

  it('is read only for a model id of the form backend/model', () => {
    for (const id of ['m', '/m', 'r/'])
      expect(message(modelCommand('load', id, {}))).toMatch(/backend\/model/);
  });
});

describe('what another process reports', () => {
  const whole = {
    kind: 'deflected',
    reason: 'local_backend_busy: local model in use by another session.',
    lane: '127.0.0.1_8080',
    session: 'nightly',
    model: 'qwen-27b',
    numbers: { waitedMs: 12.5, heldForMs: null },
  };

  it('is taken as it stands; what is left out is unknown', () => {
    expect(reportedEvent(whole)).toEqual({ ok: true, value: whole });
    expect(reportedEvent({ kind: 'fail_open', reason: 'No lane.' })).toEqual({
      ok: true,
      value: { kind: 'fail_open', reason: 'No lane.', lane: null, session: null, model: null, numbers: {} },
    });
  });

  it.each([
    ['a kind that only the runtime itself tells', { kind: 'evicted' }],
    ['no kind', { kind: null }],
    ['no reason', { reason: null }],
    ['an empty reason', { reason: '' }],
    ['a reason too long', { reason: 'x'.repeat(1001) }],
    ['a session too long', { session: 'x'.repeat(201) }],
    ['a model that is none', { model: 7 }],
    ['a lane that is a path', { lane: '../../etc/passwd_1' }],
    ['numbers that are none', { numbers: { pid: '7' } }],
    ['numbers that are a list', { numbers: [1] }],
    ['a number without a name', { numbers: { '': 1 } }],
    ['a number that JSON can not say', { numbers: { pid: Number.POSITIVE_INFINITY } }],
    [
      'more numbers than an event has',
      { numbers: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`n${i}`, i])) },
    ],
    ['a field that is not known', { at: '2026-01-01' }],
  ])('is refused with %s', (_what, change) => {
    expect(reportedEvent({ ...whole, ...change })).toMatchObject({ ok: false, error: { code: 'bad_input' } });
  });
});
