import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { agentSettingOf, conductOf, statedCaller } from '../../../electron/core/gateway/caller.ts';
import { defaults } from '../../../electron/core/settings/defaults.ts';

const AGENTS = { writer: { class: 'batch', onBusy: 'reject' } } as const;

function asking(headers: Readonly<Record<string, string>>): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, headers);
  return request;
}

describe('who is asking', () => {
  it('is what its header says, else its `user`, else its key where that is an agent’s name', () => {
    const all = { 'x-landlord-session': 'one', authorization: 'Bearer writer' };
    expect(statedCaller(asking(all), 'two', AGENTS)).toEqual({ name: 'one', from: 'header' });
    expect(statedCaller(asking({ authorization: 'Bearer writer' }), 'two', AGENTS)?.from).toBe('user');
    expect(statedCaller(asking({ authorization: 'Bearer writer' }), null, AGENTS)).toEqual({
      name: 'writer',
      from: 'key',
    });
    expect(statedCaller(asking({ 'x-api-key': 'writer' }), '', AGENTS)?.name).toBe('writer');
  });

  it('is never a key that is a secret', () => {
    expect(statedCaller(asking({ authorization: 'Bearer sk-secret' }), null, AGENTS)).toBeNull();
  });

  it('is the agent of its script’s name', () => {
    expect(agentSettingOf('writer.py', { ...defaults(), agents: AGENTS })).toEqual(AGENTS.writer);
    expect(agentSettingOf('constructor', { ...defaults(), agents: AGENTS })).toBeNull();
  });
});

describe('how it wants to be served', () => {
  it('the request’s own class first, then its agent’s settings', () => {
    expect(conductOf('interactive', AGENTS.writer, true)).toMatchObject({
      class: 'interactive',
      onBusy: 'reject',
    });
    expect(conductOf('nonsense', AGENTS.writer, true).class).toBe('batch');
  });

  it('nobody’s settings: interactive; elsewhere only where that is set up, and batch waits', () => {
    expect(conductOf(undefined, null, false)).toMatchObject({
      class: 'interactive',
      onBusy: 'wait',
      toldToWait: false,
    });
    expect(conductOf(undefined, null, true).onBusy).toBe('fallback');
    expect(conductOf('batch', null, true).onBusy).toBe('wait');
  });
});
