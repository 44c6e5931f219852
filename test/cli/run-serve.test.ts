import { fstatSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseInvocation } from '../../electron/cli/arguments.ts';
import { COMMANDS } from '../../electron/cli/commands.ts';
import { foundText, goesToJournal, type StartRuntime, serve } from '../../electron/cli/run-serve.ts';
import type { Terminal } from '../../electron/cli/terminal.ts';
import { fail, ok } from '../../shared/errors.ts';
import { createFakeRuntime, sampleState } from '../support/fake-runtime.ts';

function terminal(): Terminal & { readonly outs: string[]; readonly errs: string[] } {
  const outs: string[] = [];
  const errs: string[] = [];
  const out = (text: string): void => void outs.push(text);
  const err = (text: string): void => void errs.push(text);
  return { outs, errs, out, err, color: false, unicode: false, columns: 80 };
}

async function serveWith(start: StartRuntime, signal: Promise<unknown>, ...args: readonly string[]) {
  const command = COMMANDS.find((candidate) => candidate.name === 'serve');
  if (command === undefined) throw new Error('no serve');
  const invocation = parseInvocation(command, args);
  if (!invocation.ok) throw new Error(invocation.error.message);
  const screen = terminal();
  return { code: await serve(invocation.value, screen, start, signal), screen };
}

describe('serve', () => {
  it('passes its options on, tells the address and what was found, and stops in order on a signal', async () => {
    const order: string[] = [];
    const runtime = createFakeRuntime({ ...sampleState(), devices: [] });
    let stop: (value: unknown) => void = () => undefined;
    const signal = new Promise((resolve) => {
      stop = resolve;
    });
    const start: StartRuntime = async (options) => {
      order.push(JSON.stringify(options));
      setTimeout(() => {
        runtime.publish({ devices: sampleState().devices, backends: sampleState().backends.slice(0, 1) });
        setTimeout(() => stop('SIGTERM'), 20);
      }, 20);
      return ok({
        state: runtime.state,
        onState: runtime.onState,
        url: 'http://127.0.0.1:9',
        openUrl: 'http://127.0.0.1:9/?key=k',
        stop: async () => void order.push('stopped'),
      });
    };
    const { code, screen } = await serveWith(
      start,
      signal,
      '--port',
      '9',
      '--config',
      'c.yaml',
      '--state-dir',
      's',
    );
    expect(code).toBe(0);
    expect(order).toEqual(['{"configPath":"c.yaml","stateDir":"s","port":9}', 'stopped']);
    expect(screen.outs).toEqual([
      'VRAM Landlord is running; its page opens once with http://127.0.0.1:9/?key=k',
      'Radeon Test 24 24.0 GB · router (llama.cpp) at http://127.0.0.1:8080, guarded',
    ]);
    expect(runtime.stateListeners()).toBe(0);
  });

  it('that can not start says why and exits 69', async () => {
    const start: StartRuntime = async () => fail('already_running', 'Port 7781 is taken by process 9 (x).');
    const { code, screen } = await serveWith(start, new Promise(() => undefined));
    expect([code, screen.outs, screen.errs]).toEqual([
      69,
      [],
      ['landlord serve: Port 7781 is taken by process 9 (x).'],
    ]);
  });

  it('says plainly that nothing was found', () => {
    expect(foundText({ ...sampleState(), devices: [], backends: [] })).toBe(
      'No device read yet · no backend found yet',
    );
  });
});

describe('the address that opens the page', () => {
  it('is not given to the journal, which a group of users may read', async () => {
    const runtime = createFakeRuntime(sampleState());
    const screen = terminal();
    const command = COMMANDS.find((candidate) => candidate.name === 'serve');
    const invocation = command === undefined ? null : parseInvocation(command, []);
    if (invocation?.ok !== true) throw new Error('no serve');
    const start: StartRuntime = async () =>
      ok({
        state: runtime.state,
        onState: runtime.onState,
        url: 'http://127.0.0.1:9',
        openUrl: 'http://127.0.0.1:9/?key=k',
        stop: async () => {},
      });
    await serve(invocation.value, screen, start, Promise.resolve('SIGTERM'), true);
    expect(screen.outs[0]).toBe(
      'VRAM Landlord is running at http://127.0.0.1:9; `landlord open` opens its page',
    );
    expect(screen.outs.join()).not.toContain('key=');
  });

  it('is told everywhere else, also to a terminal that was started by a service', () => {
    const { dev, ino } = fstatSync(2);
    expect(goesToJournal({ JOURNAL_STREAM: `${dev}:${ino}` }, 2)).toBe(true);
    expect(goesToJournal({ JOURNAL_STREAM: '9:12345678' }, 2)).toBe(false);
    expect(goesToJournal({}, 2)).toBe(false);
  });
});
